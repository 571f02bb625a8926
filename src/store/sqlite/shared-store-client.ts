// A store that the main thread has open, as another thread of the process uses it: with a reader of its own, and a port to
// the one writer. The main thread opens and watches the files.
import type { MessagePort } from 'node:worker_threads'
import { storeLimitMs } from '../../limits.ts'
import { StoreUnavailable } from '../store.ts'
import { OpenFiles } from './files/files.ts'
import { openReader, type Reader } from './reader.ts'
import { within } from './within.ts'
import { PendingRequests } from './writer/pending-requests.ts'
import type { Attachment, FromClient, ToClient } from './writer/writer-messages.ts'

const closed = 'the store is closed'

export class SharedStoreClient {
  readonly #main: MessagePort
  #reader: Reader | undefined
  #writer: PendingRequests | undefined
  #hasFailed = false
  #isClosed = false
  #attached: PromiseWithResolvers<PendingRequests> | undefined

  /** `main`: what `Connections.share` gave the main thread. */
  constructor(main: MessagePort) {
    this.#main = main
    main.on('message', (message: ToClient) => this.#take(message))
    main.on('close', () => {
      this.#isClosed = true
      this.#refuse(closed)
    })
  }

  /** Resolves to the id of the store. Rejects with StoreUnavailable. */
  async open(): Promise<string> {
    await this.writer(performance.now() + storeLimitMs)
    return this.reader.readId()
  }

  /** Once it is open. */
  get reader(): Reader {
    return this.#reader as Reader
  }

  /** The writer, when nothing is known to be wrong. */
  get link(): PendingRequests | undefined {
    return this.#writer?.isUsable && !this.#isClosed ? this.#writer : undefined
  }

  /** The writer, once the main thread has one. Rejects with StoreUnavailable, at `deadlineMs` at the latest. */
  async writer(deadlineMs: number): Promise<PendingRequests> {
    /* c8 ignore next: it was attached in the same moment */
    if (this.link) return this.link
    if (this.#isClosed) throw new StoreUnavailable('nothing-added', closed)
    if (!this.#attached) {
      this.#attached = Promise.withResolvers()
      this.#post('attach')
    }
    return within(this.#attached.promise, deadlineMs)
  }

  /** Has the main thread look whether the files are still there. */
  check(): void {
    this.#post('check')
  }

  /** To be called when the writer did a request: the first one after a failure is reported. */
  recovered(): void {
    if (!this.#hasFailed) return
    this.#hasFailed = false
    this.#post('recovered')
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#reader?.close()
    this.#writer?.close()
    this.#main.close()
  }

  #take(message: ToClient): void {
    if (message === 'close') void this.close()
    else if ('attach' in message) this.#attach(message.attach)
    /* c8 ignore next: the writer cannot be started in the moment in which a thread opens the store */ else
      this.#refuse(message.unavailable)
  }

  #attach({ writer, known, path }: Attachment): void {
    try {
      this.#reader ??= openReader(path, new OpenFiles(path, known))
      this.#writer = new PendingRequests(writer, {
        failed: (failed) => {
          this.#hasFailed = true
          this.#post({ failed })
        },
      })
      this.#attached?.resolve(this.#writer)
      this.#attached = undefined
      /* c8 ignore next 3: the path is given to another file in the same moment */
    } catch (error) {
      this.#refuse((error as Error).message)
    }
  }

  /* c8 ignore next 5: see where it is called */
  #refuse(reason: string): void {
    this.#attached?.promise.catch(() => {})
    this.#attached?.reject(new StoreUnavailable('nothing-added', reason))
    this.#attached = undefined
  }

  #post(message: FromClient): void {
    this.#main.postMessage(message)
  }
}
