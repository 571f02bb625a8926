// Something that is away for a while: the log says so when it goes, now and then while it lasts, and when it is back.
import type { Logger } from 'pino'

/** While something is away there is at most one line in so many milliseconds. */
const repeatMs = 10_000

/** What is said. Without `still` nothing is said between the first line and the last. */
export type OutageWords = { gone: string; still?: string; back: string }

export class Outage {
  readonly #logger: Logger
  readonly #words: OutageWords
  readonly #now: () => number
  /** When the outage that is under way began. */
  #sinceMs: number | undefined
  /** Whether the log has been told of it. */
  #isTold = false
  #toldMs = Number.NEGATIVE_INFINITY
  #failures = 0
  #untold = 0

  /** `now`: milliseconds of a monotonic clock. */
  constructor(logger: Logger, words: OutageWords, now = () => performance.now()) {
    this.#logger = logger
    this.#words = words
    this.#now = now
  }

  /** `details` go into the line, if there is one, beside the error. Only the first line has the error's stack. */
  fails(err: Error, details: object): void {
    const nowMs = this.#now()
    if (this.#sinceMs === undefined) {
      this.#sinceMs = nowMs
      this.#failures = 0
    }
    this.#failures++
    this.#untold++
    // One that was over and is back within that time is told of later, when it still lasts then.
    if (nowMs - this.#toldMs < repeatMs) return
    if (!this.#isTold) this.#tell({ ...details, failures: this.#untold, err }, this.#words.gone, nowMs)
    else if (this.#words.still)
      this.#tell({ ...details, failures: this.#untold, reason: err.message }, this.#words.still, nowMs)
  }

  #tell(details: object, message: string, nowMs: number): void {
    this.#logger.warn(details, message)
    this.#isTold = true
    this.#toldMs = nowMs
    this.#untold = 0
  }

  /** It works. */
  holds(): void {
    if (this.#sinceMs === undefined) return
    const seconds = Math.round((this.#now() - this.#sinceMs) / 100) / 10
    this.#sinceMs = undefined
    if (!this.#isTold) return
    this.#isTold = false
    this.#untold = 0
    this.#logger.info({ seconds, failures: this.#failures }, this.#words.back)
  }
}
