// The connections of this process to one SQLite file: a reader here, a writer in its thread. What is open stays open until
// the end, whatever becomes of the path: it may be the last copy. The writer's thread is started again when it ends.

import type { MessagePort } from 'node:worker_threads'
import type { Logger } from 'pino'
import { fileCheckMs, storeCloseMs, storeLimitMs } from '../../limits.ts'
import { Outage } from '../../logging/outage.ts'
import { withTimeout } from '../../runtime/with-timeout.ts'
import { type StoreOptions, StoreUnavailable } from '../store.ts'
import { OpenFiles } from './files/files.ts'
import { openReader, type Reader } from './reader.ts'
import { SharedStoreServer } from './shared-store-server.ts'
import { within } from './within.ts'
import type { PendingRequests } from './writer/pending-requests.ts'
import { WriterHandle } from './writer/writer-handle.ts'
import type { Attachment, Failure, ThreadOptions } from './writer/writer-messages.ts'

const back = 'the database takes plants again'
const lostWords = {
  gone: 'no plants are taken: put the same file back, or restart the service to open what is at the path now',
  back,
}
const failedWords = { gone: 'the database failed', still: 'the database still fails', back }

export class Connections {
  readonly #path: string
  readonly #logger: Logger
  readonly #loss: Outage
  readonly #failure: Outage
  readonly #reconnected: () => void
  readonly #server: SharedStoreServer
  #files: OpenFiles | undefined
  #reader: Reader | undefined
  #link: WriterHandle | undefined
  #isBroken = false
  #isClosed = false
  #starting: Promise<WriterHandle> | undefined
  #checking: NodeJS.Timeout | undefined

  constructor(path: string, { logger, reconnected = () => {} }: StoreOptions) {
    this.#path = path
    this.#logger = logger
    this.#loss = new Outage(logger, lostWords)
    this.#failure = new Outage(logger, failedWords)
    this.#reconnected = reconnected
    this.#server = new SharedStoreServer({
      attach: () => this.#attach(),
      failed: (failure) => this.#note(failure),
      check: () => this.check(),
      recovered: () => this.recovered(),
    })
  }

  /** Resolves to the id of the store. Rejects with StoreRefused. */
  async open({ mustExist = false, keepsSchema = false }: StoreOptions): Promise<string> {
    const link = await this.#start({ path: this.#path, mustExist, keepsSchema })
    try {
      this.#files = new OpenFiles(this.#path, await link.opened)
      this.#reader = openReader(this.#path, this.#files)
      /* c8 ignore next 4: the path is given to another file in the same moment */
    } catch (error) {
      await link.close()
      throw error
    }
    this.#checking = setInterval(() => this.check(), fileCheckMs).unref()
    return this.reader.readId()
  }

  /** Once it is open. */
  get reader(): Reader {
    return this.#reader as Reader
  }

  /** The writer thread, when it is at work. */
  get link(): PendingRequests | undefined {
    const requests = this.#link?.requests
    return requests?.isUsable && !this.#isClosed ? requests : undefined
  }

  /** The writer thread, started again when need be. Rejects with StoreUnavailable, at `deadlineMs` at the latest. */
  async writer(deadlineMs: number): Promise<PendingRequests> {
    if (this.#isClosed) throw new StoreUnavailable('nothing-added', 'the store is closed')
    /* c8 ignore next: it was started in the same moment */
    if (this.link) return this.link
    this.#starting ??= this.#restart().finally(() => {
      this.#starting = undefined
    })
    return (await within(this.#starting, deadlineMs)).requests
  }

  /** Looks whether the files are still there. Returns the fault, if any. */
  check(): string | undefined {
    const fault = this.#files?.findFault()
    if (fault === undefined) this.#loss.reportRecovery()
    else this.#loss.reportFailure(fault)
    return fault
  }

  /** To be called when the writer did a request. */
  recovered(): void {
    this.#loss.reportRecovery()
    this.#failure.reportRecovery()
  }

  /** A port at which another thread opens the store (see shared-store-client.ts), once it is open here. */
  share(): MessagePort {
    return this.#server.add()
  }

  /** Waits for what is under way, but not for a disk that does not answer. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#checking)
    /* c8 ignore next: a start that fails while the store is closed */
    await this.#starting?.catch(() => {})
    await withTimeout(this.#letGo(), storeCloseMs, () => {})
  }

  /** The readers go first: the writer, as the last, has SQLite empty the write-ahead log into the file. */
  async #letGo(): Promise<void> {
    await this.#server.close()
    this.reader.close()
    await this.#link?.close()
  }

  async #restart(): Promise<WriterHandle> {
    const fault = this.check()
    if (fault !== undefined) throw new StoreUnavailable('nothing-added', fault, { isLogged: true })
    await this.#link?.ended
    try {
      const { known } = this.#files as OpenFiles
      const link = await this.#start({ path: this.#path, mustExist: true, known, repair: this.#isBroken })
      this.#isBroken = false
      this.#reconnected()
      return link
    } catch (error) {
      const { message } = error as Error
      this.#failure.reportFailure(message)
      throw new StoreUnavailable('nothing-added', message, { cause: error, isLogged: true })
    }
  }

  /** No request reaches the thread before the database is open there. */
  async #start(options: ThreadOptions): Promise<WriterHandle> {
    const link = new WriterHandle(options, {
      failed: (failure) => this.#note(failure),
      ended: (waiting) => this.#noteEnd(waiting),
      /* c8 ignore next: a fault of the thread that is not known yet */
      threw: (err) => this.#logger.error({ err }, 'the writer thread failed'),
    })
    await link.opened
    this.#link = link
    return link
  }

  /** Gives another thread what it needs to work on the files that are open. */
  async #attach(): Promise<Attachment> {
    await this.writer(performance.now() + storeLimitMs)
    const writer = (this.#link as WriterHandle).openPort()
    return { writer, known: (this.#files as OpenFiles).known, path: this.#path }
  }

  #note({ failed, code, lost, broken }: Failure): void {
    if (broken) this.#isBroken = true
    if (lost) this.#loss.reportFailure(failed)
    else this.#failure.reportFailure(failed, { code })
  }

  #noteEnd(waiting: number): void {
    if (waiting > 0)
      this.#logger.error({ waiting }, 'the writer thread ended; the next plant starts it again')
  }
}
