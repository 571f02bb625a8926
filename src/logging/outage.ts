// Logs an outage: when it begins, now and then while it lasts, and when it is over.
import type { Logger } from 'pino'
import { Throttle } from './throttle.ts'

/** Messages of an outage. Without `still` nothing is logged while it lasts. */
export type OutageWords = { gone: string; still?: string; back: string }

export class Outage {
  readonly #logger: Logger
  readonly #words: OutageWords
  readonly #now: () => number
  readonly #throttle: Throttle
  /** Start of the current outage. */
  #sinceMs: number | undefined
  /** True once it was logged. */
  #isTold = false
  #failures = 0

  /** `now`: milliseconds of a monotonic clock. */
  constructor(logger: Logger, words: OutageWords, now = () => performance.now()) {
    this.#logger = logger
    this.#words = words
    this.#now = now
    this.#throttle = new Throttle({ now })
  }

  /**
   * Notes a failure. `fault`: an error, logged with its stack in the first line of an outage, or an instruction to the
   * operator. `details` are added to the line, if there is one.
   */
  reportFailure(fault: Error | string, details: object = {}): void {
    this.#sinceMs ??= this.#now()
    this.#failures++
    const message = this.#isTold ? this.#words.still : this.#words.gone
    // An outage that returns within a window is logged later, if it still lasts then.
    if (message === undefined || !this.#throttle.take()) return
    const reason = typeof fault === 'string' ? fault : fault.message
    const cause = this.#isTold || typeof fault === 'string' ? { reason } : { err: fault }
    this.#logger.warn({ ...details, failures: this.#throttle.leftOut + 1, ...cause }, message)
    this.#throttle.leftOut = 0
    this.#isTold = true
  }

  reportRecovery(): void {
    if (this.#sinceMs === undefined) return
    const seconds = Math.round((this.#now() - this.#sinceMs) / 100) / 10
    const failures = this.#failures
    this.#sinceMs = undefined
    this.#failures = 0
    if (!this.#isTold) return
    this.#isTold = false
    this.#throttle.leftOut = 0
    this.#logger.info({ seconds, failures }, this.#words.back)
  }
}
