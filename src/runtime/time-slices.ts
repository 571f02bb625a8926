// Spreads work for many requests over turns of the event loop, owner by owner, so that answering thousands of requests
// does not keep others waiting.

import { longTurnMs, maxPutOff, turnMs } from '../limits.ts'
import { FairQueue } from './fair-pool.ts'

/** Owner of the work of connections with pipelined requests. */
export const inARow = 'requests in a row'

export class TimeSlices {
  readonly #report: (error: unknown) => void
  readonly #later = new FairQueue<() => void>()
  #underWay = false
  #startMs = 0
  #isMakingRoom = false

  /** `report` is called with errors that work throws; other work goes on. */
  constructor(report: (error: unknown) => void) {
    this.#report = report
  }

  /** True while work waits for a later turn. */
  get isBusy(): boolean {
    return this.#later.size > 0
  }

  /**
   * Runs `work` now if this turn has time left, otherwise in a later one, in order per owner. When much is deferred,
   * runs some of that instead and stretches the turn, except beside pipelined requests, which come as fast as they are
   * answered.
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
