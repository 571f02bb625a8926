// The main thread's handle of an HTTP thread, from its start to its end.
import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { gaugeMs } from '../../limits.ts'
import type { LineSink } from '../../logging/open-log.ts'
import { makeInTime } from '../admin/in-time.ts'
import type { Snapshot } from '../admin/thread-metrics.ts'
import type { FromWorker, ToWorker, WorkerData } from './worker-messages.ts'

/** TypeScript or compiled, like this file. */
const threadFile = join(import.meta.dirname, `worker-thread${extname(import.meta.filename)}`)
/** Three times the flag of the launcher (bin/plant-store.js); by default it would grow to twice as much. */
const youngMiB = 24

export class HttpWorkerHandle {
  /** Resolves when the thread listens; rejects when it ends before. */
  readonly listening: Promise<void>
  /** Resolves when its requests are answered. */
  readonly closed: Promise<void>
  /** Resolves when the thread has ended, to an error unless it was told to end. */
  readonly ended: Promise<Error | undefined>
  isListening = false
  /** The latest counts. */
  counted: Snapshot = []
  readonly #worker: Worker
  #error: Error | undefined
  #answered = Promise.withResolvers<void>()
  /** Concurrent scrapes share the answer; without one in time, the previous counts are used. */
  readonly #ask = makeInTime(() => this.#askNow(), gaugeMs)

  constructor(data: WorkerData, sink: LineSink) {
    const listening = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<void>()
    this.listening = listening.promise
    this.closed = closed.promise
    this.#worker = new Worker(threadFile, {
      workerData: data,
      transferList: data.store ? [data.store] : [],
      resourceLimits: { maxYoungGenerationSizeMb: youngMiB },
    })
    this.#worker.on('message', (message: FromWorker) => {
      if (message === 'listening') {
        this.isListening = true
        listening.resolve()
      } else if (message === 'closed') closed.resolve()
      else if ('log' in message) sink.write(message.log)
      else if ('counted' in message) this.#take(message.counted)
      else this.#error = new Error(message.failed)
    })
    this.#worker.on('error', (error) => {
      this.#error = error
    })
    this.ended = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        listening.reject(this.#error ?? new Error('a thread did not start'))
        closed.resolve()
        resolve(this.#error)
      })
    })
    this.listening.catch(() => {})
  }

  post(message: ToWorker): void {
    this.#worker.postMessage(message)
  }

  /** Resolves to its counts, or to the latest known ones when it does not answer. */
  async count(): Promise<Snapshot> {
    await this.#ask()
    return this.counted
  }

  async #askNow(): Promise<void> {
    this.#answered = Promise.withResolvers()
    this.post('count')
    await Promise.race([this.#answered.promise, this.ended])
  }

  #take(counted: Snapshot): void {
    this.counted = counted
    this.#answered.resolve()
  }

  /** Ends the thread at once. */
  async terminate(): Promise<void> {
    await this.#worker.terminate()
  }
}
