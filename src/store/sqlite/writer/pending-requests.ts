// The requests of one thread to the writer thread. Requests and answers are matched by their numbers.
import type { MessagePort } from 'node:worker_threads'
import { monotonicMs } from '../../../runtime/clock.ts'
import { withTimeout } from '../../../runtime/with-timeout.ts'
import { StoreUnavailable } from '../../store.ts'
import type { Answer, Done, Order, Request, Work } from './writer-messages.ts'

export class PendingRequests {
  readonly #port: MessagePort
  readonly #waiting = new Map<number, PromiseWithResolvers<Done>>()
  /** Requests that timed out and are not answered yet: while there are any, the disk is stuck. */
  readonly #overdue = new Set<number>()
  #number = 0
  #isEnding = false

  /** `port`: to the writer. */
  constructor(port: MessagePort) {
    this.#port = port
    port.on('message', (answer: Answer) => this.#take(answer))
    port.on('close', () => this.#end())
  }

  /** Sends a request. Rejects with StoreUnavailable, at `deadlineMs` (of `performance.now()`) at the latest. */
  async send(work: Work, deadlineMs: number): Promise<Done> {
    if (this.#overdue.size > 0 || this.#isEnding)
      throw new StoreUnavailable('nothing-added', 'the writer thread does not answer')
    const number = ++this.#number
    const leftMs = Math.max(0, deadlineMs - performance.now())
    const answer = Promise.withResolvers<Done>()
    this.#port.postMessage({ ...work, number, deadlineMs: monotonicMs() + leftMs } satisfies Request)
    this.#waiting.set(number, answer)
    return await withTimeout(answer.promise, leftMs, () => {
      this.#overdue.add(number)
      throw new StoreUnavailable('unknown', 'the writer thread did not answer in time')
    })
  }

  /** Takes an answer; that of a request that has timed out is ignored. */
  #take(answer: Answer): void {
    const { number } = answer
    const waiting = this.#waiting.get(number)
    this.#waiting.delete(number)
    this.#overdue.delete(number)
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
    for (const { reject } of this.#waiting.values())
      reject(new StoreUnavailable('unknown', 'the writer thread ended'))
  }
}
