// What the threads of one process count together: a limit is one of the process, whichever thread meets it.
import { makeRateMemory } from '../http/gcra.ts'

/** `counts`: the connections of each thread; `thread`: whose view this is. The rates are those of tokens and of failures. */
export type Shared = {
  readonly counts: Int32Array
  readonly rates: SharedArrayBuffer
  readonly failures: SharedArrayBuffer
  readonly thread: number
}

/** Memory for so many threads, as the first of them sees it. */
export function makeShared(threads: number): Shared {
  const counts = new Int32Array(new SharedArrayBuffer(threads * Int32Array.BYTES_PER_ELEMENT))
  return { counts, rates: makeRateMemory(), failures: makeRateMemory(), thread: 0 }
}
