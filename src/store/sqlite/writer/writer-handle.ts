// The main thread's handle of the writer thread. An uncaught error of that thread ends the process, like one of the
// main thread.
import { extname, join } from 'node:path'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { StoreRefused } from '../../store.ts'
import type { FileIds } from '../files/files.ts'
import { PendingRequests } from './pending-requests.ts'
import type { Failure, FromWriter, Order, ThreadOptions } from './writer-messages.ts'

/** TypeScript or compiled, like this file. */
const threadFile = join(import.meta.dirname, `writer-worker${extname(import.meta.filename)}`)

export type HandleEvents = {
  /** Called when a request of any thread failed, possibly because the files were lost. */
  failed: (failure: Failure) => void
  /** Called for the first success after that. */
  recovered: () => void
  /** Called when the database was reopened. */
  reopened: () => void
}

export class WriterHandle {
  /** Resolves when the database is open and migrated. Rejects with StoreRefused. */
  readonly opened: Promise<FileIds>
  /** Requests of the main thread. */
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

  /** Makes a port for the requests of another thread. */
  openPort(): MessagePort {
    const { port1, port2 } = new MessageChannel()
    this.#worker.postMessage({ port: port1 } satisfies Order, [port1])
    return port2
  }

  /** Resolves when the thread has completed its requests and closed the database. */
  async close(): Promise<void> {
    this.requests.endWriter()
    await this.#ended
  }
}
