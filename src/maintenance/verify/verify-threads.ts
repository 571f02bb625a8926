// The threads that check, as one: whichever has least to do takes the next piece of work.
import { availableParallelism } from 'node:os'
import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Done, Hands, Job } from './jobs.ts'
import type { Answer, Order } from './verify-worker.ts'

/** Beside this file, as TypeScript or compiled like it. */
const threadFile = join(import.meta.dirname, `verify-worker${extname(import.meta.filename)}`)
const maxThreads = 4
const maxYoungGenerationSizeMb = 8
/** The database's own check of its file takes as long as many pages. */
const integrityWeight = 1000

type Thread = { worker: Worker; load: number; ended: Promise<void> }

export class Threads implements Hands {
  readonly #threads: Thread[]
  readonly #waiting = new Map<number, (done: Done) => void>()
  /** Rejects with the fault of a thread, which ends the whole check. */
  readonly #failed = Promise.withResolvers<never>()
  #number = 0

  constructor(url: string) {
    const count = Math.min(availableParallelism(), maxThreads)
    this.#threads = Array.from({ length: count }, () => this.#start(url))
    this.#failed.promise.catch(() => {})
  }

  #start(url: string): Thread {
    const worker = new Worker(threadFile, {
      workerData: { url },
      // Its garbage is short-lived: more room for it would only be more memory.
      resourceLimits: { maxYoungGenerationSizeMb },
    })
    worker.on('message', ({ number, done }: Answer) => {
      this.#waiting.get(number)?.(done)
      this.#waiting.delete(number)
    })
    worker.on('error', this.#failed.reject)
    const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    return { worker, load: 0, ended }
  }

  /** One under way for each, and one that waits. */
  get lanes(): number {
    return this.#threads.length * 2
  }

  async do(job: Job): Promise<Done> {
    const thread = this.#threads.reduce((least, other) => (other.load < least.load ? other : least))
    const weight = job === 'integrity' ? integrityWeight : 1
    const number = ++this.#number
    const { promise, resolve } = Promise.withResolvers<Done>()
    this.#waiting.set(number, resolve)
    thread.load += weight
    thread.worker.postMessage({ number, job } satisfies Order)
    return Promise.race([promise, this.#failed.promise]).finally(() => {
      thread.load -= weight
    })
  }

  /** Resolves when they have done what is under way and let go of the store. */
  async close(): Promise<void> {
    for (const { worker } of this.#threads) worker.postMessage('close')
    await Promise.all(this.#threads.map(({ ended }) => ended))
  }
}
