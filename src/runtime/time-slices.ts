// Work for many requests at once, a little per turn of the event loop, and for each owner in turn: answering thousands
// of them must not keep everyone else waiting.

import { longTurnMs, maxPutOff, turnMs } from '../limits.ts'
import { FairQueue } from './fair-pool.ts'

/** Owner of the connections that go on with requests in a row. */
export const inARow = 'requests in a row'

export class TimeSlices {
  readonly #report: (error: unknown) => void
  readonly #later = new FairQueue<() => void>()
  #underWay = false
  #startMs = 0
  #isMakingRoom = false

  /** `report` is told what a piece of work throws; the others are done all the same. */
  constructor(report: (error: unknown) => void) {
    this.#report = report
  }

  /** True when some work waits for a later turn. */
  get isBusy(): boolean {
    return this.#later.size > 0
  }

  /**
   * Does `work` at once when this turn has time left, otherwise in a later one. The order of each owner is kept. When much
   * has been put off, some of that is done instead, as far as a turn may be stretched: not beside requests in a row, which
   * come as fast as they are answered.
   */
  run(work: () => void, owner = ''): void {
    if (!this.#underWay) this.#begin()
    const spentMs = performance.now() - this.#startMs
    if (this.#later.size === 0 && spentMs <= turnMs) {
      this.#do(work)
      return
    }
    this.#later.put(owner, work)
    if (this.#later.size <= maxPutOff || spentMs > longTurnMs || this.#isMakingRoom) return
    if (this.#later.count(inARow) > 0) return
    this.#isMakingRoom = true
    this.#do(this.#later.take() as () => void)
    this.#isMakingRoom = false
  }

  #begin(): void {
    this.#underWay = true
    this.#startMs = performance.now()
    setImmediate(this.#next)
  }

  readonly #next = (): void => {
    this.#underWay = false
    if (this.#later.size === 0) return
    this.#begin()
    do this.#do(this.#later.take() as () => void)
    while (this.#later.size > 0 && performance.now() - this.#startMs <= turnMs)
  }

  #do(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#report(error)
    }
  }
}
