// Jobs for the thread pool, a few at a time, and those who want them one after the other: the pool also writes the log
// and looks names up, and the cores are there for requests.
import { codecJobs, maxCodedLists } from '../limits.ts'
import { OwnerLines } from './owner-lines.ts'

export class CodecTurns {
  readonly #waiting = new OwnerLines()
  #free = codecJobs
  /** How many long lists are being compressed. */
  lists = 0

  /** Whether more lists that are compressed would only take memory: the jobs are shared by enough of them. */
  get isBusy(): boolean {
    return this.lists >= maxCodedLists
  }

  /** How many jobs of an owner wait for their turn. */
  waiting(owner: string): number {
    return this.#waiting.count(owner)
  }

  /** Does `job` when its turn has come. */
  async run<T>(owner: string, job: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((go) => this.#waiting.put(owner, go))
    try {
      return await job()
    } finally {
      const next = this.#waiting.take()
      if (next) next()
      else this.#free++
    }
  }
}
