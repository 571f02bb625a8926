// The threads that check, as one: whichever has least to do takes the next piece of work.
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Done, Hands, Job } from './jobs.ts'
import type { Answer, Order } from './thread.ts'

/** Beside this file, as TypeScript or compiled like it. */
const threadFile = join(import.meta.dirname, `thread${extname(import.meta.filename)}`)
const maxThreads = 4
const maxYoungGenerationSizeMb = 8
/** The database's own check of its file takes as long as many pages. */
const integrityWeight = 1000

type Thread = { worker: Worker; load: number }

export class Threads implements Hands {
  readonly #threads: Thread[]
  readonly #waiting = new Map<number, { resolve(done: Done): void; reject(error: Error): void }>()
  #number = 0

  constructor(url: string) {
    const count = Math.min(availableParallelism(), maxThreads)
    this.#threads = Array.from({ length: count }, () => ({ worker: this.#start(url), load: 0 }))
  }

  #start(url: string): Worker {
    const worker = new Worker(threadFile, {
      workerData: { url },
      // Its garbage is short-lived: more room for it would only be more memory.
      resourceLimits: { maxYoungGenerationSizeMb },
    })
    worker.on('message', ({ number, done }: Answer) => {
      this.#waiting.get(number)?.resolve(done)
      this.#waiting.delete(number)
    })
    /* c8 ignore next 3: a fault of the thread that is not known yet */
    worker.on('error', (error) => {
      for (const { reject } of this.#waiting.values()) reject(error)
    })
    return worker
  }

  /** One under way for each, and one that waits. */
  get lanes(): number {
    return this.#threads.length * 2
  }

  async do(job: Job): Promise<Done> {
    const thread = this.#threads.reduce((least, other) => (other.load < least.load ? other : least))
    const weight = job === 'integrity' ? integrityWeight : 1
    const number = ++this.#number
    const { promise, resolve, reject } = Promise.withResolvers<Done>()
    this.#waiting.set(number, { resolve, reject })
    thread.load += weight
    thread.worker.postMessage({ number, job } satisfies Order)
    return promise.finally(() => {
      thread.load -= weight
    })
  }

  /** Resolves when they have done what is under way and let go of the store. */
  async close(): Promise<void> {
    await Promise.all(
      this.#threads.map(async ({ worker }) => {
        const ended = once(worker, 'exit')
        worker.postMessage('close')
        await ended
      }),
    )
  }
}
