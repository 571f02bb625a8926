// Runs the database's own integrity check, if it has one, in a thread that runs this file, too: the check can take
// minutes, and the main thread has signals to handle.
import { once } from 'node:events'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { withView } from '../../store/open.ts'
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
    const [texts] = (await once(worker, 'message', { signal })) as [string[]]
    // A row may have several lines, below the name of the database.
    const lines = texts.flatMap((text) => text.split('\n'))
    const faults = lines.filter((line) => line !== 'ok' && !line.startsWith('***'))
    return faults.map((detail) => ({ detail: `integrity check: ${detail}` }))
  } catch (error) {
    // `once` rejects with an AbortError instead of the reason.
    signal?.throwIfAborted()
    return [{ detail: `the whole file cannot be read: ${(error as Error).message}` }]
  } finally {
    await worker.terminate()
  }
}

// In the thread.
if (workerData?.integrity) {
  const { url, integrity } = workerData as Task
  const rows = await withView(url, (view) => view.select<[string]>(integrity))
  parentPort?.postMessage(rows.flat())
}
