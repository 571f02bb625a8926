// THREADS: the threads that serve requests beside the main one, on the same port. A thread that dies ends the process:
// nothing listens for its error, which so becomes an uncaught one of the main thread. A thread that hangs is noticed by
// the main one; when that hangs itself, its health server does not answer.
import { errorMonitor, once } from 'node:events'
import { extname, join } from 'node:path'
import { type MessagePort, Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { Config } from '../../config/load-config.ts'
import { beatMs, gaugeMs, hungMs, storeCloseMs } from '../../limits.ts'
import type { LineSink } from '../../logging/open-log.ts'
import { Outage } from '../../logging/outage.ts'
import { makeInTime, withTimeout } from '../../runtime/with-timeout.ts'
import type { Store } from '../../store/store.ts'
import type { Metrics } from '../admin/metrics.ts'
import type { Snapshot } from '../admin/thread-metrics.ts'
import type { Shared } from './shared.ts'

/** TypeScript or compiled, like this file. */
const threadFile = join(import.meta.dirname, `worker-thread${extname(import.meta.filename)}`)
/** Three times the flag of the launcher (bin/plant-store.js); by default it would grow to twice as much. */
const youngMiB = 24
const words = { gone: 'a thread hangs', back: 'no thread hangs any more' }

/** `config`: with the main thread's port; `store`: the port at which the store is shared, if it is. */
export type WorkerData = {
  config: Config
  shared: Shared
  store: MessagePort | undefined
  isCounted: boolean
}

/** `close`: accept no more requests; `count`: send the counts. */
export type ToWorker = 'close' | 'count'

/** Emitted as an event of the worker. `closed`: all requests are answered. */
export type FromWorker =
  | ['listening' | 'closed' | 'beat']
  | ['log', Uint8Array<ArrayBuffer> | string]
  | ['counted', Snapshot]

/** `missedBeats`: in a row. While the whole process is stopped, none are missed. */
type Thread = {
  number: number
  worker: Worker
  closed: Promise<unknown>
  ended: Promise<unknown>
  count: () => Promise<Snapshot>
  missedBeats: number
}

/** `shared`: memory for all threads, of which the main one is the first; `isCounted`: true when metrics are on. */
export type ThreadsOptions = {
  store: Store
  shared: Shared
  log: { logger: Logger; sink: LineSink }
  isCounted: boolean
}

export class Threads {
  readonly #options: ThreadsOptions
  readonly #running = new Set<Thread>()
  readonly #outage: Outage
  #looking: NodeJS.Timeout | undefined
  #isClosing = false

  constructor(options: ThreadsOptions) {
    this.#options = options
    this.#outage = new Outage(options.log.logger, words)
  }

  /** True when a thread hangs. */
  get hasHung(): boolean {
    return [...this.#running].some(isHung)
  }

  /** Starts all threads; `config` has the main thread's port. Resolves when all listen. Rejects when one cannot. */
  async start(config: Config): Promise<void> {
    // A shutdown may have begun meanwhile.
    if (this.#isClosing) return
    const count = this.#options.shared.counts.length - 1
    const threads = Array.from({ length: count }, (_, index) => this.#start(index + 1, config))
    await Promise.all(threads.map(({ worker }) => once(worker, 'listening')))
    this.#looking = setInterval(() => this.#look(), beatMs).unref()
  }

  /** Resolves when all have answered their requests. */
  async close(): Promise<void> {
    this.#isClosing = true
    clearInterval(this.#looking)
    for (const { worker } of this.#running) worker.postMessage('close' satisfies ToWorker)
    await Promise.all([...this.#running].map(({ closed }) => closed))
  }

  /** Resolves, after `close`, when all threads have ended. One that cannot close its store is terminated. */
  async end(): Promise<void> {
    const all = [...this.#running]
    await withTimeout(Promise.all(all.map(({ ended }) => ended)), storeCloseMs, () => {})
    await Promise.all(all.map(({ worker }) => worker.terminate()))
  }

  /** Adds the counts of the threads to `metrics`. */
  show(metrics: Metrics): void {
    metrics.others = () => Promise.all([...this.#running].map(({ count }) => count()))
    metrics.own.gauge('plant_store_threads', 'Threads that serve requests.', () => this.#running.size + 1)
  }

  #start(number: number, config: Config): Thread {
    const { store, shared, log, isCounted } = this.#options
    const port = store.share?.()
    const worker = new Worker(threadFile, {
      workerData: { config, shared: { ...shared, thread: number }, store: port, isCounted },
      transferList: port ? [port] : [],
      resourceLimits: { maxYoungGenerationSizeMb: youngMiB },
    })
    const ended = new Promise((resolve) => worker.once('exit', resolve))
    const closed = Promise.race([new Promise((resolve) => worker.once('closed', resolve)), ended])
    const thread = { number, worker, closed, ended, count: makeCount(worker, ended), missedBeats: 0 }
    worker.on('message', ([event, value]: FromWorker) => worker.emit(event, value))
    worker.on('log', (lines) => log.sink.write(lines))
    worker.on('beat', () => {
      thread.missedBeats = 0
    })
    this.#running.add(thread)
    let hasFailed = false
    worker.once(errorMonitor, () => {
      hasFailed = true
    })
    worker.once('exit', () => {
      this.#running.delete(thread)
      /* c8 ignore next: no thread ends by itself (test/service/threads.test.ts makes one, in a process of its own) */
      if (!this.#isClosing && !hasFailed) worker.emit('error', new Error(`thread ${number} ended`))
    })
    return thread
  }

  /* c8 ignore next 6: a process whose thread hangs is killed (test/service/threads.test.ts), and leaves no coverage */
  #look(): void {
    for (const thread of this.#running) thread.missedBeats++
    const hung = [...this.#running].find(isHung)
    if (hung) this.#outage.reportFailure(`thread ${hung.number} does not answer`)
    else this.#outage.reportRecovery()
  }
}

function isHung({ missedBeats }: Thread): boolean {
  return missedBeats * beatMs >= hungMs
}

/** Makes a function that resolves to a thread's counts, or to the latest known ones when it does not answer in time. */
function makeCount(worker: Worker, ended: Promise<unknown>): () => Promise<Snapshot> {
  let latest: Snapshot = []
  worker.on('counted', (counted) => {
    latest = counted
  })
  const ask = makeInTime(async () => {
    const counted = new Promise((resolve) => worker.once('counted', resolve))
    worker.postMessage('count' satisfies ToWorker)
    await Promise.race([counted, ended])
  }, gaugeMs)
  return async () => {
    await ask()
    return latest
  }
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
