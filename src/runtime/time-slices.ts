// Work for many requests at once, a little per turn of the event loop, and for each owner in turn: answering thousands
// of them must not keep everyone else waiting.

import { turnMs } from '../limits.ts'
import { FairQueue } from './fair-pool.ts'

export class TimeSlices {
  readonly #report: (error: unknown) => void
  readonly #later = new FairQueue<() => void>()
  #underWay = false
  #startMs = 0

  /** `report` is told what a piece of work throws; the others are done all the same. */
  constructor(report: (error: unknown) => void) {
    this.#report = report
  }

  /** True when some work waits for a later turn. */
  get isBusy(): boolean {
    return this.#later.size > 0
  }

  /** Does `work` at once when this turn has time left, otherwise in a later one. The order of each owner is kept. */
  run(work: () => void, owner = ''): void {
    if (!this.#underWay) this.#begin()
    if (this.#later.size === 0 && performance.now() - this.#startMs <= turnMs) this.#do(work)
    else this.#later.put(owner, work)
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
