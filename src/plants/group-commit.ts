// Group commit: requests that arrive while a batch is being committed form the next one, so that one wait for stable
// storage serves them all.
import { ProblemError } from '../problem-error.ts'
import type { Entry, Outcome, PlantLog } from '../store/store.ts'

type Waiting = { resolve: (outcome: Outcome) => void; reject: (error: unknown) => void }

/** The most that a batch waits for company: little beside the time a request takes anyway. */
const maxGatherMs = 1

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
    return new Promise((resolve, reject) => {
      if (this.#entries.length >= this.#maxWaiting) return reject(refusal())
      this.#entries.push(entry)
      this.#waiting.push({ resolve, reject })
      if (this.#committing) return
      this.#committing = true
      void this.#commitAll()
    })
  }

  async #commitAll(): Promise<void> {
    let answered = 0
    let commitMs = 0
    while (this.#entries.length > 0) {
      await this.#gather(answered + this.#entries.length, Math.min(commitMs, maxGatherMs))
      const startMs = performance.now()
      answered = await this.#commit()
      commitMs = performance.now() - startMs
    }
    this.#committing = false
  }

  /**
   * Waits for the turn's other requests, and for those of the clients that were just answered, who tend to come back
   * at once: up to the time that one more commit would take them.
   */
  async #gather(expected: number, maxMs: number): Promise<void> {
    const endMs = performance.now() + maxMs
    do await new Promise(setImmediate)
    while (this.#entries.length < expected && performance.now() < endMs)
  }

  async #commit(): Promise<number> {
    const entries = this.#entries
    const waiting = this.#waiting
    this.#entries = []
    this.#waiting = []
    try {
      const outcomes = await this.#log.append(entries)
      for (let i = 0; i < waiting.length; i++) waiting[i]?.resolve(outcomes[i] as Outcome)
    } catch (error) {
      for (const { reject } of waiting) reject(error)
    }
    return entries.length
  }
}

function refusal(): ProblemError {
  const detail = 'Too many plants are waiting to be stored; nothing was added.'
  return new ProblemError('unavailable', detail, { headers: { 'Retry-After': '1' } })
}
