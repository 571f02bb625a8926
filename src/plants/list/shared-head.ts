// Reads the head of the log once for all requests that wait at one moment: they share its cost, and are answered
// together.
import { maxHeadRequests } from '../../limits.ts'
import type { Head, PlantLog } from '../../store/store.ts'
import { deliver, failWith, type Recipient } from '../delivery.ts'

/** Callbacks for a request that waits for the head. */
export type Reader<T> = Recipient<T> & { answer(head: Head, waiting: T): void }

export class SharedHead<T> {
  readonly #log: PlantLog
  readonly #reader: Reader<T>
  #waiting: T[] = []
  #looking = false

  /** `reader` answers each request that still waits, with the head or with the error of reading it. */
  constructor(log: PlantLog, reader: Reader<T>) {
    this.#log = log
    this.#reader = reader
  }

  /** Answers `waiting` with a head read after this call, which counts every plant acknowledged before. */
  wait(waiting: T): void {
    const count = this.#waiting.push(waiting)
    if (this.#looking) return
    if (count === 1) setImmediate(() => this.#looking || this.#look())
    else if (count > maxHeadRequests) void this.#look()
  }

  /**
   * Reads heads until no request waits. Those that arrive during a read wait for the next, as it may have begun before.
   */
  async #look(): Promise<void> {
    this.#looking = true
    const waiting = this.#waiting.filter((one) => this.#reader.waits(one))
    this.#waiting = []
    const answer = waiting.length > 0 && (await this.#read())
    // The next read runs while these are answered.
    this.#looking = this.#waiting.length > 0
    if (this.#looking) void this.#look()
    if (answer) for (const one of waiting) deliver(this.#reader, one, answer)
  }

  /** Reads the head; returns a function that answers a request. */
  async #read(): Promise<(one: T) => void> {
    try {
      const head = await this.#log.head()
      return (one) => this.#reader.answer(head, one)
    } catch (error) {
      return failWith(error)
    }
  }
}
