// Runs the database's own integrity check, if it has one, in a thread that runs this file, too: the check can take
// minutes, and the main thread has signals to handle.
import { once } from 'node:events'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { withView } from '../../store/open.ts'
import { StoreUnavailable } from '../../store/store.ts'
import type { Fault } from './faults.ts'

type Task = { url: string; integrity: string }

/** Returns the faults found by the query `integrity`. Rejects with the reason of `signal` when that aborts. */
export async function checkIntegrity(
  url: string,
  integrity: string,
  signal: AbortSignal | undefined,
): Promise<Fault[]> {
  const task: Task = { url, integrity }
  const worker = new Worker(new URL(import.meta.url), { workerData: task })
  try {
    const [details] = (await once(worker, 'message', { signal })) as [string[]]
    return details.map((detail) => ({ detail }))
  } finally {
    await worker.terminate()
    // `once` rejects with an AbortError instead of the reason.
    signal?.throwIfAborted()
  }
}

// In the thread.
if (workerData?.integrity) {
  const { url, integrity } = workerData as Task
  const rows = withView(url, (view) => view.select<[string]>(integrity))
  parentPort?.postMessage(await rows.then(describe, explain))
}

/** Describes faults in rows of the check, which may have several lines, below the name of the database. */
function describe(rows: [string][]): string[] {
  const lines = rows.flatMap(([text]) => text.split('\n'))
  return lines
    .filter((line) => line !== 'ok' && !line.startsWith('***'))
    .map((line) => `integrity check: ${line}`)
}

/* c8 ignore next 5: the file becomes unreadable after its plants were read */
/** Describes the fault of a file that cannot be read; any other error ends the thread, and the check. */
function explain(error: unknown): string[] {
  if (error instanceof StoreUnavailable) return [`the whole file cannot be read: ${error.message}`]
  throw error
}
