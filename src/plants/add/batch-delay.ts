// Delays a batch, so that more requests join it before it is committed.
import { withTimeout } from '../../runtime/with-timeout.ts'

/** The longest delay of a batch. */
const maxWaitMs = 3
/** The resolution of timers: for shorter commits, turns of the event loop are counted instead. */
const timerMs = 1
/** Stop after this many turns without another request. */
const idleTurns = 2

export class BatchDelay {
  #present = 0
  #expected = Number.POSITIVE_INFINITY
  #arrived = Promise.withResolvers<void>()

  /** Notes that `present` requests wait now. */
  noteWaiting(present: number): void {
    this.#present = present
    if (present >= this.#expected) this.#arrived.resolve()
  }

  /**
   * Resolves when `expected` requests wait, or when waiting longer would cost more than another commit. `commitMs`:
   * time of the last commit. Requests of the same turn of the event loop always join.
   */
  wait(expected: number, commitMs: number): Promise<void> {
    return commitMs < timerMs || this.#present >= expected
      ? this.#countTurns(expected)
      : this.#awaitAll(expected, Math.min(commitMs, maxWaitMs))
  }

  async #countTurns(expected: number): Promise<void> {
    const endMs = performance.now() + maxWaitMs
    let idle = 0
    do {
      const before = this.#present
      await new Promise(setImmediate)
      idle = this.#present > before ? 0 : idle + 1
    } while (this.#present < expected && idle < idleTurns && performance.now() < endMs)
  }

  async #awaitAll(expected: number, waitMs: number): Promise<void> {
    // A timer counts from the beginning of the turn, which sending answers has taken some time of.
    await new Promise(setImmediate)
    if (this.#present >= expected) return
    this.#expected = expected
    this.#arrived = Promise.withResolvers()
    await withTimeout(this.#arrived.promise, waitMs, () => {})
  }
}
