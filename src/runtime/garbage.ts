// Runs V8's garbage collector when V8 itself would not: it reacts only to a shortage of its own memory.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Bytes read between two collections, which let memory be used again while it is in the processor's caches. V8 itself
 * collects after 64 MiB of buffers, with which a whole list takes twice the time (decision 19).
 */
const collectedBytes = 4 * 2 ** 20

type Collector = (options: { type: 'major' | 'minor' }) => void

/** State of the module, because a thread has one collector. Made on demand: it needs a new context. */
let collector: Collector | undefined

/** Collects garbage. `minor`: recent garbage, in less than a millisecond; `major`: all of it, in some 20. */
export function collect(type: 'major' | 'minor'): void {
  if (!collector) {
    // Contexts made after setting the flag have the function that node --expose-gc provides.
    setFlagsFromString('--expose-gc')
    collector = runInNewContext('gc') as Collector
  }
  collector({ type })
}

/** Makes a function to be told of the bytes of each buffer that was read, which collects recent garbage in time. */
export function makeCollector(): (bytes: number) => void {
  let uncollected = 0
  return (bytes) => {
    uncollected += bytes
    if (uncollected < collectedBytes) return
    uncollected = 0
    collect('minor')
  }
}
