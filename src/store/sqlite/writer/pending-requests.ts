// The requests of one thread to the writer thread. Requests and answers are matched by their numbers.
import type { MessagePort } from 'node:worker_threads'
import { overdueSweepMs } from '../../../limits.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import { StoreUnavailable } from '../../store.ts'
import type { Answer, Done, Order, Request, Work } from './writer-messages.ts'

type Waiting = { resolve: (done: Done) => void; reject: (error: Error) => void; deadlineMs: number }

export class PendingRequests {
  readonly #port: MessagePort
  readonly #waiting = new Map<number, Waiting>()
  #number = 0
  /** Requests that timed out and are not answered yet: while there are any, the disk is stuck. */
  readonly #overdue = new Set<number>()
  #looking: NodeJS.Timeout | undefined
  #isEnding = false

  /** `port`: to the writer. */
  constructor(port: MessagePort) {
    this.#port = port
    port.on('message', (answer: Answer) => this.#take(answer))
    port.on('close', () => this.#end())
  }

  /** Sends a request. Rejects with StoreUnavailable, soon after `deadlineMs` (of `performance.now()`) at the latest. */
  send(work: Work, deadlineMs: number): Promise<Done> {
    if (this.#overdue.size > 0 || this.#isEnding)
      return Promise.reject(new StoreUnavailable('nothing-added', 'the writer thread does not answer'))
    const number = ++this.#number
    const leftMs = deadlineMs - performance.now()
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject, deadlineMs })
      const request: Request = { ...work, number, deadlineMs: monotonicMs() + leftMs }
      this.#port.postMessage(request)
      this.#looking ??= setTimeout(this.#giveUpOverdue, overdueSweepMs).unref()
    })
  }

  /** Takes an answer; that of a request that has timed out is ignored. */
  #take(answer: Answer): void {
    const { number } = answer
    this.#overdue.delete(number)
    const waiting = this.#settle(number)
    if ('done' in answer) waiting?.resolve(answer.done)
    // The writer has told the main thread, which has logged it.
    else waiting?.reject(new StoreUnavailable(answer.outcome, answer.failed, { isLogged: true }))
  }

  /** Accepts no more requests, and ends the writer after those that it has. */
  endWriter(): void {
    this.#isEnding = true
    this.#port.postMessage('close' satisfies Order)
  }

  /** Closes the port; the writer goes on for other threads. */
  close(): void {
    this.#port.close()
  }

  #end(): void {
    this.#isEnding = true
    const ended = new StoreUnavailable('unknown', 'the writer thread ended')
    for (const number of [...this.#waiting.keys()]) this.#settle(number)?.reject(ended)
  }

  /** Rejects overdue requests. One timer for all costs less than one each. */
  readonly #giveUpOverdue = (): void => {
    const nowMs = performance.now()
    for (const [number, { deadlineMs }] of this.#waiting) {
      if (deadlineMs > nowMs) continue
      this.#overdue.add(number)
      const late = new StoreUnavailable('unknown', 'the writer thread did not answer in time')
      this.#settle(number)?.reject(late)
    }
    this.#looking = undefined
    if (this.#waiting.size > 0) this.#looking = setTimeout(this.#giveUpOverdue, overdueSweepMs).unref()
  }

  #settle(number: number): Waiting | undefined {
    const waiting = this.#waiting.get(number)
    this.#waiting.delete(number)
    return waiting
  }
}
