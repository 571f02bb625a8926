// The main thread's end of one writer thread, from its start to its end. Requests and answers carry numbers, and what
// waits belongs to this one thread: an answer can never reach the wrong request.
import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type Lost, StoreRefused, StoreUnavailable } from '../store.ts'
import type { FileIds } from './files.ts'
import {
  type Answer,
  type Done,
  type Failure,
  monotonicMs,
  type Opened,
  type Order,
  type ThreadOptions,
  type Work,
} from './messages.ts'

/** Beside this file, as TypeScript or compiled like it. */
const threadFile = join(import.meta.dirname, `thread${extname(import.meta.filename)}`)
/** How often deadlines are looked at: one timer for all costs less than one each. */
const overdueLookMs = 100

type Waiting = { resolve: (done: Done) => void; reject: (error: Error) => void; deadlineMs: number }

export type LinkEvents = {
  /** The thread cannot do a request; it may have lost the files, or be about to end. */
  failed: (failure: Failure) => void
  /** The thread ended while so many requests waited. `error`: what it threw. */
  ended: (waiting: number, error: Error | undefined) => void
}

export class ThreadLink {
  /** Resolves when the database is open and its schema up to date. Rejects with StoreRefused. */
  readonly opened: Promise<FileIds>
  readonly ended: Promise<void>
  readonly #worker: Worker
  readonly #events: LinkEvents
  readonly #waiting = new Map<number, Waiting>()
  #number = 0
  /** Requests that were given up and not answered yet: as long as there are any, the disk does not answer. */
  readonly #overdue = new Set<number>()
  #looking: NodeJS.Timeout | undefined
  #isEnding = false
  #error: Error | undefined

  constructor(options: ThreadOptions, events: LinkEvents) {
    this.#events = events
    this.#worker = new Worker(threadFile, { workerData: options })
    /* c8 ignore next 3: a fault of the thread that is not known yet */
    this.#worker.on('error', (error) => {
      this.#error = error
    })
    this.opened = new Promise((resolve, reject) => {
      this.#worker.once('message', (answer: Opened) => {
        if ('opened' in answer) resolve(answer.opened)
        else reject(new StoreRefused(answer.refused))
        this.#worker.on('message', (answer: Answer) => this.#take(answer))
      })
      this.#worker.once('exit', () => reject(new StoreRefused('the writer thread did not start')))
    })
    this.opened.catch(() => {
      this.#isEnding = true
    })
    this.ended = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        this.#end()
        resolve()
      })
    })
  }

  /** False when the thread has ended or is about to. */
  get isUsable(): boolean {
    return !this.#isEnding
  }

  /** Whether the thread may be in a transaction. */
  get isBusy(): boolean {
    return this.#waiting.size > 0 || this.#overdue.size > 0
  }

  /** Tells the thread the descriptor of the open `-shm`; before the first request. */
  share(index: number): void {
    this.#post({ index })
  }

  /** Rejects with StoreUnavailable, soon after `deadlineMs` (of `performance.now()`) at the latest. */
  send(work: Work, deadlineMs: number): Promise<Done> {
    if (this.#overdue.size > 0 || this.#isEnding)
      return Promise.reject(new StoreUnavailable('nothing-added', 'the writer thread does not answer'))
    const number = ++this.#number
    const leftMs = deadlineMs - performance.now()
    return new Promise((resolve, reject) => {
      this.#waiting.set(number, { resolve, reject, deadlineMs })
      this.#post({ ...work, number, deadlineMs: monotonicMs() + leftMs })
      this.#looking ??= setTimeout(this.#giveUpOverdue, overdueLookMs).unref()
    })
  }

  /** Resolves when the thread has done what it was asked for and let go of the database. */
  close(): Promise<void> {
    this.#isEnding = true
    this.#post('close')
    return this.ended
  }

  #post(order: Order): void {
    this.#worker.postMessage(order)
  }

  /** Nobody waits for an answer that comes too late. */
  #take(answer: Answer): void {
    const { number } = answer
    this.#overdue.delete(number)
    if ('failed' in answer) {
      if (answer.broken) this.#isEnding = true
      this.#events.failed(answer)
      this.#reject(number, answer.outcome, answer.failed)
    } else this.#settle(number)?.resolve(answer.done)
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

  #end(): void {
    this.#isEnding = true
    this.#overdue.clear()
    this.#events.ended(this.#waiting.size, this.#error)
    for (const number of [...this.#waiting.keys()]) this.#reject(number, 'unknown', 'the writer thread ended')
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
