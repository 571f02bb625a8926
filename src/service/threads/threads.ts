// THREADS: the threads that serve requests beside the main one, on the same port. A thread that dies ends the process,
// like an uncaught error in the main thread.

import type { Logger } from 'pino'
import type { Config } from '../../config/load-config.ts'
import { storeCloseMs } from '../../limits.ts'
import type { LineSink } from '../../logging/open-log.ts'
import { withTimeout } from '../../runtime/with-timeout.ts'
import type { Store } from '../../store/store.ts'
import type { Metrics } from '../admin/metrics.ts'
import { Heartbeats } from './heartbeats.ts'
import { HttpWorkerHandle } from './http-worker-handle.ts'
import type { Shared } from './shared.ts'

export type ThreadsOptions = {
  store: Store
  /** Memory for all threads; the main one is the first. */
  shared: Shared
  log: { logger: Logger; sink: LineSink }
  /** True when metrics are on. */
  isCounted: boolean
}

export class Threads {
  readonly #options: ThreadsOptions
  readonly #running = new Set<HttpWorkerHandle>()
  readonly #heartbeats: Heartbeats
  #isDraining = false
  #isClosing = false

  constructor(options: ThreadsOptions) {
    this.#options = options
    this.#heartbeats = new Heartbeats(options.shared.beats, options.log.logger)
  }

  get hasHung(): boolean {
    return this.#heartbeats.hasHung
  }

  /** Starts all threads; `config` has the main thread's port. Resolves when all listen. Rejects when one cannot. */
  async start(config: Config): Promise<void> {
    // A shutdown may have begun meanwhile.
    if (this.#isClosing) return
    const count = this.#options.shared.counts.length - 1
    const threads = Array.from({ length: count }, (_, index) => this.#start(index + 1, config))
    await Promise.all(threads.map(({ listening }) => listening))
    this.#heartbeats.watch()
  }

  /** Ends each connection with its next answer from now on. */
  drain(): void {
    this.#isDraining = true
    for (const thread of this.#running) thread.post('drain')
  }

  /** Resolves when all have answered their requests. */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#heartbeats.close()
    for (const thread of this.#running) thread.post('close')
    await Promise.all([...this.#running].map(({ closed }) => closed))
  }

  /** Resolves, after `close`, when all threads have ended. One that cannot close its store is terminated. */
  async end(): Promise<void> {
    const all = [...this.#running]
    await withTimeout(Promise.all(all.map(({ ended }) => ended)), storeCloseMs, () => {})
    await Promise.all(all.map((thread) => thread.terminate()))
  }

  /** Adds the counts of the threads to `metrics`. */
  show(metrics: Metrics): void {
    metrics.others = () => Promise.all([...this.#running].map((thread) => thread.count()))
    metrics.own.gauge('plant_store_threads', 'Threads that serve requests.', () => this.#running.size + 1)
  }

  #start(number: number, config: Config): HttpWorkerHandle {
    const { store, shared, log, isCounted } = this.#options
    const data = { config, shared: { ...shared, thread: number }, store: store.share?.(), isCounted }
    const thread = new HttpWorkerHandle(data, log.sink)
    this.#running.add(thread)
    /* c8 ignore next: SIGTERM between the starts of two threads */
    if (this.#isDraining) thread.post('drain')
    void thread.ended.then((cause) => {
      this.#running.delete(thread)
      if (thread.isListening && !this.#isClosing) failProcess(new Error(`thread ${number} ended`, { cause }))
    })
    return thread
  }
}

/** Throws outside of any promise, so that the process ends as with an uncaught error of the main thread. */
function failProcess(error: Error): void {
  setImmediate(() => {
    throw error
  })
}

/**
 * Systems that spread connections over listeners on one port (nodejs.org/api/net.html#serverlistenoptions-callback).
 */
const spreading = ['linux', 'freebsd', 'sunos', 'aix']

/** Returns the number of threads, or 1 where the system cannot spread connections over them. */
export function countThreads(threads: number, logger: Logger, platform: string = process.platform): number {
  if (threads === 1 || spreading.includes(platform)) return threads
  logger.warn(
    `THREADS ${threads}: this system cannot share a port between threads, so one thread serves all requests`,
  )
  return 1
}
