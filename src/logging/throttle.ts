// Throttles repeated lines of the log: a few per window, and a count of the others.

import { logWindowMs } from '../limits.ts'

export class Throttle {
  readonly #most: number
  readonly #now: () => number
  readonly #windowMs: number
  #startMs = Number.NEGATIVE_INFINITY
  #lines = 0
  /** Number of omitted lines; the caller resets it after reporting it. */
  leftOut = 0

  /** `most`: lines per window, which begins with its first line; `now`: milliseconds of a monotonic clock. */
  constructor(most = 1, now = () => performance.now(), windowMs = logWindowMs) {
    this.#most = most
    this.#now = now
    this.#windowMs = windowMs
  }

  /** Counts a line; true when it is to be written. */
  take(): boolean {
    const nowMs = this.#now()
    if (nowMs - this.#startMs >= this.#windowMs) {
      this.#startMs = nowMs
      this.#lines = 0
    }
    if (++this.#lines <= this.#most) return true
    this.leftOut++
    return false
  }
}
