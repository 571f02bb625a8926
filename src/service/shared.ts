// Memory shared by the threads of a process, so that limits apply to the process.
import { randomUUID } from 'node:crypto'
import { makeRateMemory } from '../http/access/gcra.ts'

export type Shared = ReturnType<typeof makeShared>

/** Makes the memory for a number of threads, as the first of them sees it. */
export function makeShared(threads: number) {
  const integers = (count: number) =>
    new Int32Array(new SharedArrayBuffer(count * Int32Array.BYTES_PER_ELEMENT))
  return {
    /** Open and idle connections per thread. */
    counts: integers(threads),
    idle: integers(threads),
    /** Heartbeats that a thread missed in a row. While the whole process is stopped, none are missed. */
    missedBeats: integers(threads),
    /** Not 0 before a shutdown, when each answer ends its connection. */
    draining: integers(1),
    /** Memory of the rate limits of tokens and of failed authentications. */
    rates: makeRateMemory(),
    failures: makeRateMemory(),
    /** Index of this thread. */
    thread: 0,
    /** Id of the process. */
    instanceId: randomUUID(),
  }
}
