// Answers for requests that waited together: each is given by itself, so that a fault in one harms no other.
import type { TimeSlices } from '../../runtime/time-slices.ts'

/** Callbacks of `GroupCommit` and `SharedHead` for those who wait. */
export type Recipient<Result, T> = {
  /** True when an answer is still of use to somebody. */
  waits(waiting: T): boolean
  /** On whose behalf it is: answers are given to each owner in turn. */
  owner?(waiting: T): string
  answer(result: Result, waiting: T): void
  fail(error: unknown, waiting: T): void
}

export class Delivery<Result, T> {
  readonly #recipient: Recipient<Result, T>
  readonly #slices: TimeSlices

  constructor(recipient: Recipient<Result, T>, slices: TimeSlices) {
    this.#recipient = recipient
    this.#slices = slices
  }

  /** Answers; when that throws, the error is the answer, to this one alone. */
  give(result: Result, waiting: T): void {
    this.#slices.run(() => {
      if (!this.#recipient.waits(waiting)) return
      try {
        this.#recipient.answer(result, waiting)
      } catch (error) {
        this.#recipient.fail(error, waiting)
      }
    }, this.#recipient.owner?.(waiting))
  }

  fail(error: unknown, waiting: T): void {
    this.#slices.run(() => {
      if (this.#recipient.waits(waiting)) this.#recipient.fail(error, waiting)
    }, this.#recipient.owner?.(waiting))
  }
}
