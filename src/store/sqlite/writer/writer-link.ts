// The main thread's end of one writer thread, from its start to its end.
import { extname, join } from 'node:path'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { StoreRefused } from '../store.ts'
import type { FileIds } from './files.ts'
import type { Answer, Done, Failure, Opened, Order, SharedIndex, ThreadOptions, Work } from './messages.ts'
import { Requests } from './requests.ts'

/** Beside this file, as TypeScript or compiled like it. */
const threadFile = join(import.meta.dirname, `thread${extname(import.meta.filename)}`)

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
  readonly #requests: Requests
  #error: Error | undefined

  constructor(options: ThreadOptions, events: LinkEvents) {
    this.#worker = new Worker(threadFile, { workerData: options })
    this.#requests = new Requests({ post: (request) => this.#post(request), failed: events.failed })
    /* c8 ignore next 3: a fault of the thread that is not known yet */
    this.#worker.on('error', (error) => {
      this.#error = error
    })
    this.opened = new Promise((resolve, reject) => {
      this.#worker.once('message', (answer: Opened) => {
        if ('opened' in answer) resolve(answer.opened)
        else reject(new StoreRefused(answer.refused))
        this.#worker.on('message', (answer: Answer) => this.#requests.take(answer))
      })
      this.#worker.once('exit', () => reject(new StoreRefused('the writer thread did not start')))
    })
    this.opened.catch(() => this.#requests.close())
    this.ended = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        events.ended(this.#requests.end(), this.#error)
        resolve()
      })
    })
  }

  /** False when the thread has ended or is about to. */
  get isUsable(): boolean {
    return this.#requests.isUsable
  }

  /** Tells the thread of the open `-shm`; before the first request. */
  share(index: SharedIndex): void {
    this.#post(index)
  }

  /** A port at which another thread has requests of its own with the writer. */
  openPort(): MessagePort {
    const { port1, port2 } = new MessageChannel()
    this.#worker.postMessage({ port: port1 } satisfies Order, [port1])
    return port2
  }

  /** See `Requests.send`. */
  send(work: Work, deadlineMs: number): Promise<Done> {
    return this.#requests.send(work, deadlineMs)
  }

  /** Resolves when the thread has done what it was asked for and let go of the database. */
  close(): Promise<void> {
    this.#requests.close()
    this.#post('close')
    return this.ended
  }

  #post(order: Order): void {
    this.#worker.postMessage(order)
  }
}
