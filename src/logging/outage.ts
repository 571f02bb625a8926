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
  /** The current outage. `isTold`: true once it was logged. */
  #current: { sinceMs: number; failures: number; isTold: boolean } | undefined

  /** `now`: milliseconds of a monotonic clock. */
  constructor(logger: Logger, words: OutageWords, now = () => performance.now()) {
    this.#logger = logger
    this.#words = words
    this.#now = now
    this.#throttle = new Throttle(1, now)
  }

  /**
   * Notes a failure. `fault`: an error, logged with its stack in the first line of an outage, or an instruction to the
   * operator. `details` are added to the line, if there is one.
   */
  reportFailure(fault: Error | string, details: object = {}): void {
    this.#current ??= { sinceMs: this.#now(), failures: 0, isTold: false }
    const { isTold } = this.#current
    this.#current.failures++
    const message = isTold ? this.#words.still : this.#words.gone
    // An outage that returns within a window is logged later, if it still lasts then.
    if (message === undefined || !this.#throttle.take()) return
    const reason = typeof fault === 'string' ? fault : fault.message
    const cause = isTold || typeof fault === 'string' ? { reason } : { err: fault }
    this.#logger.warn({ ...details, failures: this.#throttle.leftOut + 1, ...cause }, message)
    this.#throttle.leftOut = 0
    this.#current.isTold = true
  }

  reportRecovery(): void {
    const outage = this.#current
    this.#current = undefined
    if (!outage?.isTold) return
    const seconds = Math.round((this.#now() - outage.sinceMs) / 100) / 10
    this.#throttle.leftOut = 0
    this.#logger.info({ seconds, failures: outage.failures }, this.#words.back)
  }
}
