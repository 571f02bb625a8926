// Memory shared by the threads of a process, so that limits apply to the process.
import { randomUUID } from 'node:crypto'
import { makeRateMemory } from '../../http/access/gcra.ts'

/**
 * `counts`, `idle`: open and idle connections per thread; `beats`: heartbeats; `thread`: index of this thread;
 * `instanceId`: of the process; `rates`, `failures`: memory of the rate limits of tokens and of failed authentications.
 */
export type Shared = {
  readonly counts: Int32Array
  readonly idle: Int32Array
  readonly beats: Int32Array
  readonly rates: SharedArrayBuffer
  readonly failures: SharedArrayBuffer
  readonly thread: number
  readonly instanceId: string
}

/** Makes the memory for a number of threads, as the first of them sees it. */
export function makeShared(threads: number): Shared {
  const counters = () => new Int32Array(new SharedArrayBuffer(threads * Int32Array.BYTES_PER_ELEMENT))
  return {
    counts: counters(),
    idle: counters(),
    beats: counters(),
    rates: makeRateMemory(),
    failures: makeRateMemory(),
    thread: 0,
    instanceId: randomUUID(),
  }
}
