// Reads the head of the log once for all requests that wait at one moment: they share its cost, and are answered
// together.
import type { FastifyReply } from 'fastify'
import { waits } from '../../../http/connection/in-flight.ts'
import { maxHeadRequests } from '../../../limits.ts'
import type { Head, PlantLog } from '../../../store/engine.ts'
import { deliver, failWith } from '../../delivery.ts'

export class SharedHead {
  readonly #log: PlantLog
  readonly #answer: (head: Head, reply: FastifyReply) => void
  #waiting: FastifyReply[] = []
  #looking = false

  /** `answer`: called for each request that still waits, unless the head cannot be read: then it gets the error. */
  constructor(log: PlantLog, answer: (head: Head, reply: FastifyReply) => void) {
    this.#log = log
    this.#answer = answer
  }

  /** Answers `reply` with a head read after this call, which counts every plant acknowledged before. */
  wait(reply: FastifyReply): void {
    const count = this.#waiting.push(reply)
    if (this.#looking) return
    if (count === 1) setImmediate(() => this.#looking || this.#look())
    else if (count > maxHeadRequests) void this.#look()
  }

  /**
   * Reads heads until no request waits. Those that arrive during a read wait for the next, as it may have begun before.
   */
  async #look(): Promise<void> {
    this.#looking = true
    const waiting = this.#waiting.filter(waits)
    this.#waiting = []
    const answer = waiting.length > 0 && (await this.#read())
    // The next read runs while these are answered.
    this.#looking = this.#waiting.length > 0
    if (this.#looking) void this.#look()
    if (answer) for (const reply of waiting) deliver(reply, answer)
  }

  /** Reads the head; returns a function that answers a request. */
  async #read(): Promise<(reply: FastifyReply) => void> {
    try {
      const head = await this.#log.head()
      return (reply) => this.#answer(head, reply)
    } catch (error) {
      return failWith(error)
    }
  }
}
