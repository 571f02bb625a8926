// Lines that would come in floods: a few in a while, and a count of those that were left out.

import { logWindowMs } from '../limits.ts'

/** `most`: how many lines a window has, which begins with the first after the one before; `now`: milliseconds of a monotonic clock. */
export type ThrottleOptions = { most?: number; now?: () => number }

export class Throttle {
  readonly #most: number
  readonly #now: () => number
  #startMs = Number.NEGATIVE_INFINITY
  #lines = 0
  /** Number of lines left out; the caller resets it once it has reported it. */
  leftOut = 0

  constructor({ most = 1, now = () => performance.now() }: ThrottleOptions = {}) {
    this.#most = most
    this.#now = now
  }

  /** Counts a line, and says whether it is to be written. */
  take(): boolean {
    const nowMs = this.#now()
    if (nowMs - this.#startMs >= logWindowMs) {
      this.#startMs = nowMs
      this.#lines = 0
    }
    if (++this.#lines <= this.#most) return true
    this.leftOut++
    return false
  }
}
