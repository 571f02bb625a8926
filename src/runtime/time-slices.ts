// Spreads work over turns of the event loop, owner by owner, so that others are served between: reads of pages that are
// not cached, requests in a row on one connection, and answers to refused requests.
import { turnMs } from '../limits.ts'
import { FairQueue } from './fair-pool.ts'

export class TimeSlices {
  readonly #later = new FairQueue<() => void>()
  /** The end of this turn's time; undefined while nothing was done in it. */
  #endMs: number | undefined

  /** Runs `work` now if this turn has time left, otherwise in a later one, in order per owner. */
  run(work: () => void, owner: string): void {
    this.#endMs ??= this.#begin()
    if (this.#later.isEmpty && performance.now() <= this.#endMs) work()
    else this.#later.put(owner, work)
  }

  #begin(): number {
    setImmediate(this.#next)
    return performance.now() + turnMs
  }

  readonly #next = (): void => {
    this.#endMs = this.#later.isEmpty ? undefined : this.#begin()
    if (this.#endMs === undefined) return
    do this.#later.take()?.()
    while (!this.#later.isEmpty && performance.now() <= this.#endMs)
  }
}
