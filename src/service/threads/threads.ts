// THREADS: the threads that serve requests beside the main one, on the same port. From outside it is one process; a thread
// that dies costs the requests that it had, and another one takes its place.
import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Metrics } from '../admin/metrics.ts'
import type { Snapshot } from '../admin/thread-metrics.ts'
import type { Config } from '../config/config.ts'
import { storeCloseMs } from '../limits.ts'
import type { LineSink } from '../log/open-log.ts'
import type { Store } from '../store/store.ts'
import { PartThread } from './part-thread.ts'
import type { Shared } from './shared.ts'

/** A thread that does not start, or dies soon, is not replaced before this time has passed since its start. */
const retryMs = 1000

export type ThreadsOptions = {
  store: Store
  /** For as many threads as there are to be; the main one is the first of them. */
  shared: Shared
  log: { logger: Logger; sink: LineSink }
  /** Whether what the threads do is counted. */
  isCounted: boolean
}

export class Threads {
  readonly #options: ThreadsOptions
  readonly #running = new Set<PartThread>()
  #isDraining = false
  #isClosing = false
  #died = 0
  /** What threads that are no more had counted: counters never go back. */
  #former: Snapshot = []
  #kept = Promise.resolve()

  constructor(options: ThreadsOptions) {
    this.#options = options
  }

  /** `config`: with the port that the main thread listens on. Resolves when all listen. Rejects when one cannot. */
  async start(config: Config): Promise<void> {
    // It may have been told to end meanwhile.
    if (this.#isClosing) return
    const started: Promise<void>[] = []
    for (let n = 1; n < this.#options.shared.counts.length; n++)
      started.push(this.#start(n, config).listening)
    await Promise.all(started)
  }

  /** From now on every answer ends its connection. */
  drain(): void {
    this.#isDraining = true
    for (const thread of this.#running) thread.post('drain')
  }

  /** Resolves when all have answered what they had. */
  async close(): Promise<void> {
    this.#isClosing = true
    for (const thread of this.#running) thread.post('close')
    await Promise.all([...this.#running].map(({ closed }) => closed))
  }

  /** After `close`: resolves when the threads have ended. One that cannot let go of its store is ended. */
  async end(): Promise<void> {
    const all = [...this.#running]
    const late = wait(storeCloseMs, undefined, { ref: false })
    await Promise.race([late, Promise.all(all.map(({ ended }) => ended))])
    await Promise.all(all.map((thread) => thread.terminate()))
  }

  /** Has `metrics` show what all threads have counted. */
  show(metrics: Metrics): void {
    metrics.others = async () => [
      this.#former,
      ...(await Promise.all([...this.#running].map((thread) => thread.count()))),
    ]
    const { own } = metrics
    own.gauge('plant_store_threads', 'Threads that serve requests.', () => this.#running.size + 1)
    own.counter('plant_store_threads_died_total', 'Threads that were replaced.', () => this.#died)
  }

  #start(number: number, config: Config): PartThread {
    const { store, shared, log, isCounted } = this.#options
    const data = { config, shared: { ...shared, thread: number }, store: store.share?.(), isCounted }
    const startMs = performance.now()
    const thread = new PartThread(data, log.sink)
    this.#running.add(thread)
    if (this.#isDraining) thread.post('drain')
    void thread.ended.then(async (err) => {
      shared.counts[number] = 0
      if (isCounted) await this.#keep(thread)
      else this.#running.delete(thread)
      if (this.#isClosing) return
      this.#died++
      log.logger.error({ err, thread: number }, 'a thread ended, and is replaced; its requests are lost')
      await wait(Math.max(0, startMs + retryMs - performance.now()))
      if (!this.#isClosing) this.#start(number, config)
    })
    return thread
  }

  /** One after the other. What a thread has counted is in the sums all the time, and only once. */
  #keep(thread: PartThread): Promise<void> {
    this.#kept = this.#kept.then(async () => {
      const { sumCounters } = await import('../admin/metrics.ts')
      this.#former = await sumCounters([this.#former, thread.counted])
      this.#running.delete(thread)
    })
    return this.#kept
  }
}
