// Runs the database's own integrity check, if it has one, in a thread.
import { once } from 'node:events'
import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Fault } from './faults.ts'
import type { Integrity } from './integrity-worker.ts'

/** TypeScript or compiled, like this file. */
const workerFile = join(import.meta.dirname, `integrity-worker${extname(import.meta.filename)}`)

/** Returns the faults found by the query `integrity`. Rejects with the reason of `signal` when that aborts. */
export async function checkIntegrity(
  url: string,
  integrity: string,
  signal: AbortSignal | undefined,
): Promise<Fault[]> {
  const worker = new Worker(workerFile, { workerData: { url, integrity } })
  try {
    const [found] = (await once(worker, 'message', { signal })) as [Integrity]
    if ('failed' in found) return [{ detail: `the whole file cannot be read: ${found.failed}` }]
    // A row may have several lines, below the name of the database.
    const lines = found.texts.flatMap((text) => text.split('\n'))
    const faults = lines.filter((line) => line !== 'ok' && !line.startsWith('***'))
    return faults.map((detail) => ({ detail: `integrity check: ${detail}` }))
  } finally {
    await worker.terminate()
    // `once` rejects with an AbortError instead of the reason.
    signal?.throwIfAborted()
  }
}
