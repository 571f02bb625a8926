// Delays a batch, so that more requests join it before it is committed.

/** The most that a batch waits. */
const maxWaitMs = 3
/** No timer is finer than this: when a commit takes less, turns of the event loop are counted instead. */
const timerMs = 1
/** Stop after this many turns without another request. */
const idleTurns = 2

export class BatchDelay {
  #present = 0
  #expected = Number.POSITIVE_INFINITY
  #go: (() => void) | undefined

  /** `present` are there now. */
  noteWaiting(present: number): void {
    this.#present = present
    if (present >= this.#expected) this.#go?.()
  }

  /**
   * Resolves when `expected` are there, or once waiting costs more than one more commit would. `commitMs`: what the
   * latest took. Whoever comes in the same turn of the event loop always comes along.
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
    // A timer starts from the time of the turn, which lies back by what the answers before took.
    await new Promise(setImmediate)
    if (this.#present >= expected) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => this.#go?.(), waitMs)
      this.#expected = expected
      this.#go = () => {
        clearTimeout(timer)
        this.#expected = Number.POSITIVE_INFINITY
        resolve()
      }
    })
  }
}
