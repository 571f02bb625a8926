// The main thread's end of one writer thread, from its start to its end.
import { extname, join } from 'node:path'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { StoreRefused } from '../../store.ts'
import type { FileIds } from '../files/files.ts'
import { PendingRequests } from './pending-requests.ts'
import type { Failure, Opened, Order, ThreadOptions } from './writer-messages.ts'

/** Beside this file, as TypeScript or compiled like it. */
const threadFile = join(import.meta.dirname, `writer-worker${extname(import.meta.filename)}`)

export type HandleEvents = {
  /** The thread cannot do a request; it may have lost the files, or be about to end. */
  failed: (failure: Failure) => void
  /** The thread ended while so many requests waited. */
  ended: (waiting: number) => void
  /** The thread threw something that it should have caught. */
  threw: (error: Error) => void
}

export class WriterHandle {
  /** Resolves when the database is open and its schema up to date. Rejects with StoreRefused. */
  readonly opened: Promise<FileIds>
  readonly ended: Promise<void>
  readonly #worker: Worker
  /** Those of the main thread. */
  readonly requests: PendingRequests

  constructor(options: ThreadOptions, events: HandleEvents) {
    this.#worker = new Worker(threadFile, { workerData: options })
    this.requests = new PendingRequests(this.openPort(), events)
    this.#worker.on('error', events.threw)
    this.opened = new Promise((resolve, reject) => {
      this.#worker.once('message', (answer: Opened) => {
        if ('opened' in answer) resolve(answer.opened)
        else reject(new StoreRefused(answer.refused))
      })
      this.#worker.once('exit', () => reject(new StoreRefused('the writer thread did not start')))
    })
    this.opened.catch(() => {})
    this.ended = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        // The end of its port is heard of behind its last answers.
        this.requests.endWriter()
        resolve()
      })
    })
  }

  /** A port at which another thread has requests of its own with the writer. */
  openPort(): MessagePort {
    const { port1, port2 } = new MessageChannel()
    this.#worker.postMessage({ port: port1 } satisfies Order, [port1])
    return port2
  }

  /** Resolves when the thread has done what it was asked for and let go of the database. */
  close(): Promise<void> {
    this.requests.endWriter()
    return this.ended
  }
}
