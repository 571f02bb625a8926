// Logs an outage when it begins and when it is over, or failures that have no end, now and then.
import type { Logger } from 'pino'

/** The least time between two lines of one outage. */
const windowMs = 10_000

/** Messages of an outage. Without `back` nobody reports its end, so `gone` is logged again while failures go on. */
export type OutageWords = { gone: string; back?: string }

export class Outage {
  readonly #logger: Logger
  readonly #words: OutageWords
  readonly #now: () => number
  #lastLineMs = Number.NEGATIVE_INFINITY
  /** Failures since the last line. */
  #unlogged = 0
  /** The current outage. `isLogged`: a line has reported it. */
  #current: { sinceMs: number; failures: number; isLogged: boolean } | undefined

  /** `now`: milliseconds of a monotonic clock. */
  constructor(logger: Logger, words: OutageWords, now = () => performance.now()) {
    this.#logger = logger
    this.#words = words
    this.#now = now
  }

  /**
   * Notes a failure. `fault`: an error (the first line of an outage has its stack), or a message for the operator.
   * `details` are added to the line, if there is one.
   */
  reportFailure(fault: Error | string, details: object = {}): void {
    const nowMs = this.#now()
    this.#current ??= { sinceMs: nowMs, failures: 0, isLogged: false }
    const { isLogged } = this.#current
    this.#current.failures++
    if (isLogged && this.#words.back !== undefined) return
    this.#unlogged++
    // An outage that returns within the window is logged only after the window, if it still lasts then.
    if (nowMs - this.#lastLineMs < windowMs) return
    const reason = typeof fault === 'string' ? fault : fault.message
    const cause = isLogged || typeof fault === 'string' ? { reason } : { err: fault }
    this.#logger.warn({ ...details, failures: this.#unlogged, ...cause }, this.#words.gone)
    this.#lastLineMs = nowMs
    this.#unlogged = 0
    this.#current.isLogged = true
  }

  reportRecovery(): void {
    const outage = this.#current
    this.#current = undefined
    if (!outage?.isLogged) return
    const seconds = Math.round((this.#now() - outage.sinceMs) / 100) / 10
    this.#unlogged = 0
    this.#logger.info({ seconds, failures: outage.failures }, this.#words.back)
  }
}
