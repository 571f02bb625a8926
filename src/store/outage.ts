// Logs an outage of a database: when it begins, now and then while it lasts, and when it is over.
import type { Logger } from 'pino'

/** Messages of an outage. Without `still` nothing is logged while it lasts. */
export type OutageWords = { gone: string; still?: string; back: string }

/** At most one line is logged in this time. */
const windowMs = 10_000

export class Outage {
  readonly #logger: Logger
  readonly #words: OutageWords
  readonly #now: () => number
  #lastLineMs = Number.NEGATIVE_INFINITY
  /** Failures since the last line. */
  #untold = 0
  /** The current outage. `isTold`: true once it was logged. */
  #current: { sinceMs: number; failures: number; isTold: boolean } | undefined

  /** `now`: milliseconds of a monotonic clock. */
  constructor(logger: Logger, words: OutageWords, now = () => performance.now()) {
    this.#logger = logger
    this.#words = words
    this.#now = now
  }

  /**
   * Notes a failure. `fault`: an error, logged with its stack in the first line of an outage, or an instruction to the
   * operator. `details` are added to the line, if there is one.
   */
  reportFailure(fault: Error | string, details: object = {}): void {
    const nowMs = this.#now()
    this.#current ??= { sinceMs: nowMs, failures: 0, isTold: false }
    this.#current.failures++
    const { isTold } = this.#current
    const message = isTold ? this.#words.still : this.#words.gone
    if (message === undefined) return
    this.#untold++
    // An outage that returns within the window is logged later, if it still lasts then.
    if (nowMs - this.#lastLineMs < windowMs) return
    const reason = typeof fault === 'string' ? fault : fault.message
    const cause = isTold || typeof fault === 'string' ? { reason } : { err: fault }
    this.#logger.warn({ ...details, failures: this.#untold, ...cause }, message)
    this.#lastLineMs = nowMs
    this.#untold = 0
    this.#current.isTold = true
  }

  reportRecovery(): void {
    const outage = this.#current
    this.#current = undefined
    if (!outage?.isTold) return
    const seconds = Math.round((this.#now() - outage.sinceMs) / 100) / 10
    this.#untold = 0
    this.#logger.info({ seconds, failures: outage.failures }, this.#words.back)
  }
}
