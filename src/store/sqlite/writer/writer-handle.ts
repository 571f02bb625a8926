// The main thread's end of the writer thread. Nothing is caught that the thread should have caught: such a fault ends the
// process, as one of the main thread does.
import { extname, join } from 'node:path'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { StoreRefused } from '../../store.ts'
import type { FileIds } from '../files/files.ts'
import { PendingRequests } from './pending-requests.ts'
import type { Failure, FromWriter, Order, ThreadOptions } from './writer-messages.ts'

/** Beside this file, as TypeScript or compiled like it. */
const threadFile = join(import.meta.dirname, `writer-worker${extname(import.meta.filename)}`)

export type HandleEvents = {
  /** The thread could not do a request, whichever thread it is from; it may have lost the files. */
  failed: (failure: Failure) => void
  /** It did one after that. */
  recovered: () => void
  /** It opened the database anew. */
  reopened: () => void
}

export class WriterHandle {
  /** Resolves when the database is open and its schema up to date. Rejects with StoreRefused. */
  readonly opened: Promise<FileIds>
  /** Those of the main thread. */
  readonly requests: PendingRequests
  readonly #worker: Worker
  readonly #ended: Promise<void>

  constructor(options: ThreadOptions, events: HandleEvents) {
    this.#worker = new Worker(threadFile, { workerData: options })
    this.requests = new PendingRequests(this.openPort())
    const opened = Promise.withResolvers<FileIds>()
    this.opened = opened.promise
    this.#worker.on('message', (message: FromWriter) => {
      if (message === 'recovered' || message === 'reopened') events[message]()
      else if ('failed' in message) events.failed(message)
      else if ('opened' in message) opened.resolve(message.opened)
      else opened.reject(new StoreRefused(message.refused))
    })
    this.#ended = new Promise((resolve) => this.#worker.once('exit', () => resolve()))
  }

  /** A port at which another thread has requests of its own with the writer. */
  openPort(): MessagePort {
    const { port1, port2 } = new MessageChannel()
    this.#worker.postMessage({ port: port1 } satisfies Order, [port1])
    return port2
  }

  /** Resolves when the thread has done what it was asked for and let go of the database. */
  async close(): Promise<void> {
    this.requests.endWriter()
    await this.#ended
  }
}
