// Divides the time-outs of `src/limits.ts`, all by the same number, so that their relations hold: for what is loaded
// after this (`await import`), and for the threads and services that are started then.
import { registerHooks, syncBuiltinESMExports } from 'node:module'
import workers, { type WorkerOptions } from 'node:worker_threads'
import { isFull } from './full.ts'

const divisor = 3
const limits = import.meta.resolve('../../src/limits.ts')
const preload = `--import=${import.meta.url}`

/** Each number keeps its width: coverage goes by where things stand in the file. */
function shorten(source: string): string {
  return source.replace(/^(export const \w+Ms = )([\d_]+)$/gm, (_, start: string, number: string) => {
    const ms = Math.round(Number(number.replaceAll('_', '')) / divisor)
    return start + String(ms).padEnd(number.length)
  })
}

/** Threads take over what their process was started with: this is for those of a process that was started without. */
function preloadInThreads(): void {
  const { Worker } = workers
  workers.Worker = class extends Worker {
    constructor(file: string | URL, options?: WorkerOptions) {
      super(file, { ...options, execArgv: [...process.execArgv, preload] })
    }
  }
  syncBuiltinESMExports()
}

if (!isFull) {
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      return url === limits ? { ...loaded, source: shorten(String(loaded.source)) } : loaded
    },
  })
  if (process.env.NODE_OPTIONS?.includes(preload) !== true) preloadInThreads()
  // For the processes that tests start.
  process.env.TEST_NODE_OPTIONS = preload
}
