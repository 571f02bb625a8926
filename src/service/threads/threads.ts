// THREADS: the threads that serve requests beside the main one, on the same port. A thread that dies ends the process:
// nothing listens for its error, which so becomes an uncaught one of the main thread. A thread that hangs is noticed by
// the main one; when that hangs itself, its health server does not answer.
import { errorMonitor, once } from 'node:events'
import { extname, join } from 'node:path'
import { type MessagePort, Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { Config } from '../../config/load-config.ts'
import { beatMs, gaugeMs, hungMs, storeCloseMs } from '../../limits.ts'
import { Outage } from '../../logging/outage.ts'
import { makeInTime, withTimeout } from '../../runtime/with-timeout.ts'
import type { Metrics } from '../admin/metrics.ts'
import type { Snapshot } from '../admin/thread-metrics.ts'
import type { HttpWorkerOptions } from './http-worker.ts'

/** TypeScript or compiled, like this file. */
const threadFile = join(import.meta.dirname, `worker-thread${extname(import.meta.filename)}`)
/** Three times the flag of the launcher (bin/plant-store.js); by default it would grow to twice as much. */
const youngMiB = 24

/** `config`: with the main thread's port; `store`: the port at which the store is shared, if it is. */
export type WorkerData = Pick<HttpWorkerOptions, 'config' | 'shared'> & {
  store: MessagePort | undefined
  isCounted: boolean
}

/** `close`: accept no more requests; `count`: send the counts. */
export type ToWorker = 'close' | 'count'

/** Emitted as an event of the worker. `closed`: all requests are answered. */
export type FromWorker =
  | ['listening' | 'closed']
  | ['log', Uint8Array<ArrayBuffer> | string]
  | ['counted', Snapshot]

/** `shared`: memory for all threads, of which the main one is the first; `metrics`: publish the counts of all. */
export type ThreadsOptions = Omit<HttpWorkerOptions, 'config'> & { metrics?: Metrics | undefined }

export class Threads {
  readonly #options: ThreadsOptions
  /** The running threads, each with the function that asks it for its counts. */
  readonly #running = new Map<Worker, () => Promise<Snapshot>>()
  readonly #outage: Outage
  #looking: NodeJS.Timeout | undefined
  #isClosing = false

  constructor(options: ThreadsOptions) {
    this.#options = options
    const { log, metrics } = options
    this.#outage = new Outage(log.logger, { gone: 'a thread hangs', back: 'no thread hangs any more' })
    if (!metrics) return
    metrics.others = () => Promise.all([...this.#running.values()].map((count) => count()))
    metrics.gauge('plant_store_threads', 'Threads that serve requests.', () => this.#running.size + 1)
  }

  /** True when a thread hangs. */
  get hasHung(): boolean {
    return this.#options.shared.missedBeats.some(isHung)
  }

  /** Starts all threads; `config` has the main thread's port. Resolves when all listen. Rejects when one cannot. */
  async start(config: Config): Promise<void> {
    // A shutdown may have begun meanwhile.
    if (this.#isClosing) return
    const count = this.#options.shared.counts.length - 1
    const workers = Array.from({ length: count }, (_, index) => this.#start(index + 1, config))
    await Promise.all(workers.map((worker) => once(worker, 'listening')))
    this.#looking = setInterval(() => this.#look(), beatMs).unref()
  }

  /** Resolves when all have answered their requests. */
  async close(): Promise<void> {
    this.#isClosing = true
    clearInterval(this.#looking)
    const workers = [...this.#running.keys()]
    for (const worker of workers) worker.postMessage('close' satisfies ToWorker)
    await Promise.all(workers.map((worker) => waitFor(worker, 'closed')))
  }

  /** Resolves, after `close`, when all threads have ended. One that cannot close its store is terminated. */
  async end(): Promise<void> {
    const workers = [...this.#running.keys()]
    await withTimeout(Promise.all(workers.map((worker) => waitFor(worker, 'exit'))), storeCloseMs, () => {})
    await Promise.all(workers.map((worker) => worker.terminate()))
  }

  #start(number: number, config: Config): Worker {
    const { store, shared, log, metrics } = this.#options
    const port = store.share?.()
    const isCounted = metrics !== undefined
    const worker = new Worker(threadFile, {
      name: 'plants-http',
      workerData: { config, shared: { ...shared, thread: number }, store: port, isCounted },
      transferList: port ? [port] : [],
      resourceLimits: { maxYoungGenerationSizeMb: youngMiB },
    })
    worker.on('message', ([event, value]: FromWorker) => worker.emit(event, value))
    worker.on('log', (lines) => log.sink.write(lines))
    this.#running.set(worker, makeCount(worker))
    worker.once(errorMonitor, () => this.#running.delete(worker))
    worker.once('exit', () => {
      const hasFailed = !this.#running.delete(worker)
      /* c8 ignore next: no thread ends by itself (test/service/threads.test.ts makes one, in a process of its own) */
      if (!this.#isClosing && !hasFailed) worker.emit('error', new Error(`thread ${number} ended`))
    })
    return worker
  }

  /* c8 ignore next 7: a process whose thread hangs is killed (test/service/threads.test.ts), and leaves no coverage */
  #look(): void {
    const { missedBeats } = this.#options.shared
    for (let thread = 1; thread < missedBeats.length; thread++) Atomics.add(missedBeats, thread, 1)
    const hung = missedBeats.findIndex(isHung)
    if (hung > 0) this.#outage.reportFailure(`thread ${hung} does not answer`)
    else this.#outage.reportRecovery()
  }
}

function isHung(missedBeats: number): boolean {
  return missedBeats * beatMs >= hungMs
}

/** Resolves at an event of a thread, or at its end. Unlike `once` of Node it does not listen for errors. */
function waitFor(worker: Worker, event: 'closed' | 'exit'): Promise<unknown> {
  return new Promise((resolve) => worker.once(event, resolve).once('exit', resolve))
}

/** Makes a function that resolves to a thread's counts, or to the latest known ones when it does not answer in time. */
function makeCount(worker: Worker): () => Promise<Snapshot> {
  let latest: Snapshot = []
  const ask = makeInTime(async () => {
    worker.postMessage('count' satisfies ToWorker)
    latest = await new Promise<Snapshot>((resolve) => worker.once('counted', resolve))
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
