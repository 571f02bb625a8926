// The requests that one thread has with the writer thread. They and their answers carry numbers, and what waits belongs
// to this one line to this one writer: an answer can never reach the wrong request.
import { monotonicMs } from '../../clock.ts'
import { type Lost, StoreUnavailable } from '../store.ts'
import type { Answer, Done, Failure, Request, Work } from './messages.ts'

/** How often deadlines are looked at: one timer for all costs less than one each. */
const overdueLookMs = 100

type Waiting = { resolve: (done: Done) => void; reject: (error: Error) => void; deadlineMs: number }

export type RequestEvents = {
  /** Hands a request to the writer. */
  post: (request: Request) => void
  /** The writer cannot do a request; it may have lost the files, or be about to end. */
  failed: (failure: Failure) => void
}

export class Requests {
  readonly #events: RequestEvents
  readonly #waiting = new Map<number, Waiting>()
  #number = 0
  /** Requests that were given up and not answered yet: as long as there are any, the disk does not answer. */
  readonly #overdue = new Set<number>()
  #looking: NodeJS.Timeout | undefined
  #isEnding = false

  constructor(events: RequestEvents) {
    this.#events = events
  }

  /** False when the writer has ended or is about to. */
  get isUsable(): boolean {
    return !this.#isEnding
  }

  /** Rejects with StoreUnavailable, soon after `deadlineMs` (of `performance.now()`) at the latest. */
  send(work: Work, deadlineMs: number): Promise<Done> {
    if (this.#overdue.size > 0 || this.#isEnding)
      return Promise.reject(new StoreUnavailable('nothing-added', 'the writer thread does not answer'))
    const number = ++this.#number
    const leftMs = deadlineMs - performance.now()
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject, deadlineMs })
      this.#events.post({ ...work, number, deadlineMs: monotonicMs() + leftMs })
      this.#looking ??= setTimeout(this.#giveUpOverdue, overdueLookMs).unref()
    })
  }

  /** Nobody waits for an answer that comes too late. */
  take(answer: Answer): void {
    const { number } = answer
    this.#overdue.delete(number)
    if ('failed' in answer) {
      if (answer.broken) this.#isEnding = true
      this.#events.failed(answer)
      this.#reject(number, answer.outcome, answer.failed)
    } else this.#settle(number)?.resolve(answer.done)
  }

  /** No more requests are taken. */
  close(): void {
    this.#isEnding = true
  }

  /** The writer has ended. How many requests waited: what became of them cannot be told. */
  end(): number {
    this.#isEnding = true
    this.#overdue.clear()
    const numbers = [...this.#waiting.keys()]
    for (const number of numbers) this.#reject(number, 'unknown', 'the writer thread ended')
    return numbers.length
  }

  readonly #giveUpOverdue = (): void => {
    const nowMs = performance.now()
    for (const [number, { deadlineMs }] of this.#waiting) {
      /* c8 ignore next 4: a thread that hangs in its disk */
      if (deadlineMs > nowMs) continue
      this.#overdue.add(number)
      this.#reject(number, 'unknown', 'the writer thread did not answer in time')
    }
    this.#looking = undefined
    if (this.#waiting.size > 0) this.#looking = setTimeout(this.#giveUpOverdue, overdueLookMs).unref()
  }

  #reject(number: number, outcome: Lost, message: string): void {
    this.#settle(number)?.reject(new StoreUnavailable(outcome, message))
  }

  #settle(number: number): Waiting | undefined {
    const waiting = this.#waiting.get(number)
    this.#waiting.delete(number)
    return waiting
  }
}
