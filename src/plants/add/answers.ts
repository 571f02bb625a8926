// Answers for requests that waited together: each is given by itself, so that a fault in one harms no other.
import type { Turns } from '../../runtime/turns.ts'

/** Callbacks of `GroupCommit` and `SharedHead` for those who wait. */
export type Waiter<Result, T> = {
  /** True when an answer is still of use to somebody. */
  waits(waiting: T): boolean
  /** On whose behalf it is: answers are given to each owner in turn. */
  owner?(waiting: T): string
  answer(result: Result, waiting: T): void
  fail(error: unknown, waiting: T): void
}

export class Answers<Result, T> {
  readonly #waiter: Waiter<Result, T>
  readonly #turns: Turns

  constructor(waiter: Waiter<Result, T>, turns: Turns) {
    this.#waiter = waiter
    this.#turns = turns
  }

  /** Answers; when that throws, the error is the answer, to this one alone. */
  give(result: Result, waiting: T): void {
    this.#turns.run(() => {
      if (!this.#waiter.waits(waiting)) return
      try {
        this.#waiter.answer(result, waiting)
      } catch (error) {
        this.#waiter.fail(error, waiting)
      }
    }, this.#waiter.owner?.(waiting))
  }

  fail(error: unknown, waiting: T): void {
    this.#turns.run(() => {
      if (this.#waiter.waits(waiting)) this.#waiter.fail(error, waiting)
    }, this.#waiter.owner?.(waiting))
  }
}
