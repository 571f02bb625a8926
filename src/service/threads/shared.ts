// Memory shared by the threads of a process: limits are the process's, whichever thread meets them.
import { randomUUID } from 'node:crypto'
import { makeRateMemory } from '../../http/access/gcra.ts'

/**
 * `counts`, `idle`: the connections of each thread, and those that are idle; `beats`: its heartbeat; `thread`: whose view
 * this is; `instanceId`: of the process. The rates are those of tokens and of failures.
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

/** Memory for so many threads, as the first of them sees it. */
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
