// V8's garbage collector, for the moments that V8 does not see: it collects when memory of its own runs short.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

type Collector = (options: { type: 'major' | 'minor' }) => void

/** State of the module, because there is one collector for the thread; it takes a context that a start need not wait for. */
let collector: Collector | undefined

/** `minor`: what has just become garbage, in less than a millisecond; `major`: all of it, in some 20. */
export function collect(type: 'major' | 'minor'): void {
  collector ??= expose()
  collector({ type })
}

/** The function is there for contexts made after the flag was set (node --expose-gc). */
function expose(): Collector {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}
