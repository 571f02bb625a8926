// Divides the time-outs of src/ by one number, which preserves their ratios, in modules that are loaded after this one
// (`await import`), and in the threads and services that a test starts afterwards. A time-out is a constant of a module
// whose name ends in `Ms`, or an option of a server.
import { registerHooks } from 'node:module'
import { isFull } from './full.ts'

export const divisor = isFull ? 1 : 2
const sources = import.meta.resolve('../../src/')
const timeout = /^((?:export )?const \w+Ms = |.*\b\w+(?:Timeout|Interval): )([\d_]+)\b/gm

/** Keeps the width of each number, so that positions for coverage stay valid. */
function shorten(source: string): string {
  return source.replace(timeout, (_, start: string, number: string) => {
    const ms = Math.max(1, Math.round(Number(number.replaceAll('_', '')) / divisor))
    return start + String(ms).padEnd(number.length)
  })
}

if (!isFull) {
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      return url.startsWith(sources) ? { ...loaded, source: shorten(String(loaded.source)) } : loaded
    },
  })
  // For the processes and threads that tests start.
  process.env.TEST_NODE_OPTIONS = `--import=${import.meta.url}`
}
