// Spreads work over turns of the event loop, owner by owner, so that others are served between: reads of pages that are
// not cached, the next requests of connections with requests in a row, and answers to refused requests.
import { turnMs } from '../limits.ts'
import { FairQueue } from './fair-pool.ts'

export class TimeSlices {
  readonly #later = new FairQueue<() => void>()
  #underWay = false
  #startMs = 0

  /** True while work waits for a later turn. */
  get isBusy(): boolean {
    return !this.#later.isEmpty
  }

  /** Runs `work` now if this turn has time left, otherwise in a later one, in order per owner. */
  run(work: () => void, owner: string): void {
    if (!this.#underWay) this.#begin()
    if (this.#later.isEmpty && performance.now() - this.#startMs <= turnMs) work()
    else this.#later.put(owner, work)
  }

  #begin(): void {
    this.#underWay = true
    this.#startMs = performance.now()
    setImmediate(this.#next)
  }

  readonly #next = (): void => {
    this.#underWay = false
    if (this.#later.isEmpty) return
    this.#begin()
    do this.#later.take()?.()
    while (!this.#later.isEmpty && performance.now() - this.#startMs <= turnMs)
  }
}
