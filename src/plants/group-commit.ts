// Group commit: requests that arrive while a batch is being committed form the next one, so that one wait for stable
// storage serves them all.
import { ProblemError } from '../problem-error.ts'
import type { Entry, Outcome, PlantLog } from '../store/store.ts'

type Waiting = { resolve: (outcome: Outcome) => void; reject: (error: unknown) => void }

export class GroupCommit {
  readonly #log: PlantLog
  readonly #maxWaiting: number
  #entries: Entry[] = []
  #waiting: Waiting[] = []
  #committing = false

  /** `maxWaiting`: how many plants may wait for the next batch; beyond it they are refused. */
  constructor(log: PlantLog, maxWaiting = 4096) {
    this.#log = log
    this.#maxWaiting = maxWaiting
  }

  /** Resolves with what became of the entry, once that is on stable storage. Rejects with `unavailable`. */
  append(entry: Entry): Promise<Outcome> {
    if (this.#entries.length >= this.#maxWaiting) {
      const detail = 'Too many plants are waiting to be stored; nothing was added.'
      throw new ProblemError('unavailable', detail, { headers: { 'Retry-After': '1' } })
    }
    return new Promise((resolve, reject) => {
      this.#entries.push(entry)
      this.#waiting.push({ resolve, reject })
      if (this.#committing) return
      this.#committing = true
      setImmediate(() => void this.#commitAll())
    })
  }

  async #commitAll(): Promise<void> {
    while (this.#entries.length > 0) {
      const entries = this.#entries
      const waiting = this.#waiting
      this.#entries = []
      this.#waiting = []
      try {
        const outcomes = await this.#log.append(entries)
        waiting.forEach(({ resolve }, index) => {
          resolve(outcomes[index] as Outcome)
        })
      } catch (error) {
        for (const { reject } of waiting) reject(error)
      }
    }
    this.#committing = false
  }
}
