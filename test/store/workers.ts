// The threads that this process starts.
import type { Worker } from 'node:worker_threads'
import type { Test } from 'tap'

/** The threads that are started from now on, as they come. */
export function watchWorkers(t: Test): Worker[] {
  const seen: Worker[] = []
  const note = (worker: Worker) => seen.push(worker)
  process.on('worker', note)
  t.teardown(() => process.off('worker', note))
  return seen
}
