// Reads the head of the log once for all requests that wait at one moment: they share its cost, and are answered
// together.

import { maxPutOff } from '../../limits.ts'
import type { TimeSlices } from '../../runtime/time-slices.ts'
import type { Head, PlantLog } from '../../store/store.ts'
import { Delivery, type Recipient } from '../add/delivery.ts'

export class SharedHead<T> {
  readonly #log: PlantLog
  readonly #recipient: Recipient<Head, T>
  readonly #delivery: Delivery<Head, T>
  #waiting: T[] = []
  #looking = false

  /** `recipient` answers each request that still waits, with the head or with the error of reading it. */
  constructor(log: PlantLog, recipient: Recipient<Head, T>, slices: TimeSlices) {
    this.#log = log
    this.#recipient = recipient
    this.#delivery = new Delivery(recipient, slices)
  }

  /** Answers `waiting` with a head read after this call, which counts every plant acknowledged before. */
  wait(waiting: T): void {
    const count = this.#waiting.push(waiting)
    if (this.#looking) return
    if (count === 1) setImmediate(this.#begin)
    else if (count > maxPutOff) void this.#look()
  }

  readonly #begin = (): void => {
    if (!this.#looking && this.#waiting.length > 0) void this.#look()
  }

  /**
   * Reads heads until no request waits. Those that arrive during a read wait for the next, as it may have begun before.
   */
  readonly #look = async (): Promise<void> => {
    this.#looking = true
    const waiting = this.#waiting.filter((one) => this.#recipient.waits(one))
    this.#waiting = []
    const answer = waiting.length > 0 ? await this.#read() : undefined
    // The next read runs while these are answered.
    this.#looking = this.#waiting.length > 0
    if (this.#looking) void this.#look()
    if (answer) for (const one of waiting) answer(one)
  }

  /** Reads the head; returns a function that answers a request. */
  async #read(): Promise<(one: T) => void> {
    try {
      const head = await this.#log.head()
      return (one) => this.#delivery.give(head, one)
    } catch (error) {
      return (one) => this.#delivery.fail(error, one)
    }
  }
}
