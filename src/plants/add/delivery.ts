// Delivers answers to requests that waited together, one by one, so that a fault in one affects no other.
import type { TimeSlices } from '../../runtime/time-slices.ts'

/** Callbacks of `GroupCommit` and `SharedHead` for waiting requests. */
export type Recipient<Result, T> = {
  /** True while somebody still waits for the answer. */
  waits(waiting: T): boolean
  /** The owner of the request: answers are delivered to owners in turn. */
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

  /** Answers a request; when that throws, answers it with the error. */
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
