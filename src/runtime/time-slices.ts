// Spreads what a client can send without waiting for answers over turns of the event loop, so that others are served
// between: the next requests of a connection with requests in a row, and answers to refused ones.
import { turnMs } from '../limits.ts'

export class TimeSlices {
  readonly #later: (() => void)[] = []
  #underWay = false
  #startMs = 0

  /** True while work waits for a later turn. */
  get isBusy(): boolean {
    return this.#later.length > 0
  }

  /** Runs `work` now if this turn has time left, otherwise in a later one, in order. */
  run(work: () => void): void {
    if (!this.#underWay) this.#begin()
    if (this.#later.length === 0 && performance.now() - this.#startMs <= turnMs) work()
    else this.#later.push(work)
  }

  #begin(): void {
    this.#underWay = true
    this.#startMs = performance.now()
    setImmediate(this.#next)
  }

  readonly #next = (): void => {
    this.#underWay = false
    if (this.#later.length === 0) return
    this.#begin()
    do this.#later.shift()?.()
    while (this.#later.length > 0 && performance.now() - this.#startMs <= turnMs)
  }
}
