// Group commit: requests that arrive while a batch is being committed form the next one, so that one wait for stable
// storage serves them all.
import { ProblemError } from '../http/problem-error.ts'
import type { Entry, Outcome, PlantLog } from '../store/store.ts'

/** What waits for its entry to be committed. `answer` and `fail` do not throw. */
export type Committed<T> = {
  answer: (outcome: Outcome, waiting: T) => void
  fail: (error: unknown, waiting: T) => void
}

/** How many plants may wait for the next batch. */
const maxWaiting = 4096
/** The most that a batch waits for company. */
const maxGatherMs = 3

export class GroupCommit<T> {
  readonly #log: PlantLog
  readonly #committed: Committed<T>
  #entries: Entry[] = []
  #waiting: T[] = []
  #committing = false

  constructor(log: PlantLog, committed: Committed<T>) {
    this.#log = log
    this.#committed = committed
  }

  /** Has `waiting` answered once the entry is on stable storage. Throws `unavailable` when too many wait. */
  append(entry: Entry, waiting: T): void {
    if (this.#entries.length >= maxWaiting) throw refusal()
    this.#entries.push(entry)
    this.#waiting.push(waiting)
    if (this.#committing) return
    this.#committing = true
    void this.#commitAll()
  }

  async #commitAll(): Promise<void> {
    let answered = 0
    let commitMs = 0
    while (this.#entries.length > 0) {
      await this.#gather(answered + this.#entries.length, commitMs)
      const startMs = performance.now()
      answered = await this.#commit()
      commitMs = performance.now() - startMs
    }
    this.#committing = false
  }

  /**
   * Waits for the other requests of this turn, and for the clients that were just answered, who tend to come back at
   * once: while more come, or for the time that one more commit would take them.
   */
  async #gather(expected: number, commitMs: number): Promise<void> {
    const startMs = performance.now()
    let waitedMs = 0
    let before: number
    do {
      before = this.#entries.length
      await new Promise(setImmediate)
      waitedMs = performance.now() - startMs
    } while (
      this.#entries.length < expected &&
      waitedMs < maxGatherMs &&
      (this.#entries.length > before || waitedMs < commitMs)
    )
  }

  async #commit(): Promise<number> {
    const entries = this.#entries
    const waiting = this.#waiting
    this.#entries = []
    this.#waiting = []
    try {
      const outcomes = await this.#log.append(entries)
      waiting.forEach((one, index) => {
        this.#committed.answer(outcomes[index] as Outcome, one)
      })
    } catch (error) {
      for (const one of waiting) this.#committed.fail(error, one)
    }
    return entries.length
  }
}

function refusal(): ProblemError {
  const detail = 'Too many plants are waiting to be stored; nothing was added.'
  return new ProblemError('unavailable', detail, { headers: { 'Retry-After': '1' } })
}
