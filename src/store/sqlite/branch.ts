// A store that the main thread has open, as another thread of the process has it: with a reader of its own, and a port to
// the one writer. To open, watch and exchange the files remains the main thread's work.
import type { MessagePort } from 'node:worker_threads'
import { storeLimitMs } from '../../limits.ts'
import { StoreUnavailable } from '../store.ts'
import { IndexLock } from './index-lock.ts'
import type { Answer, Bind, Done, Failure, FromBranch, ToBranch, Work } from './messages.ts'
import { Reader } from './reader.ts'
import { Requests } from './requests.ts'
import { WalIndex } from './wal-index.ts'
import { within } from './within.ts'

/** One writer thread, as a thread that shares it sees it. */
class Writer {
  readonly #port: MessagePort
  readonly #requests: Requests

  constructor(port: MessagePort, failed: (failure: Failure) => void) {
    this.#port = port
    this.#requests = new Requests({ post: (request) => port.postMessage(request), failed })
    port.on('message', (answer: Answer) => this.#requests.take(answer))
    port.on('close', () => this.#requests.end())
  }

  get isUsable(): boolean {
    return this.#requests.isUsable
  }

  send(work: Work, deadlineMs: number): Promise<Done> {
    return this.#requests.send(work, deadlineMs)
  }

  close(): void {
    this.#port.close()
  }
}

export class Branch {
  /** Open, but for the moments in which lost files are exchanged. */
  reader: Reader | undefined
  readonly #main: MessagePort
  #writer: Writer | undefined
  #hasFailed = false
  #bound: PromiseWithResolvers<Writer> | undefined

  /** `main`: what `Connections.share` gave the main thread. */
  constructor(main: MessagePort) {
    this.#main = main
    main.on('message', (message: ToBranch) => this.#take(message))
    main.on('close', () => this.#refuse('the store is closed'))
  }

  /** Resolves to the id of the store. Rejects with StoreUnavailable. */
  async open(): Promise<string> {
    await this.writer(performance.now() + storeLimitMs)
    return (this.reader as Reader).readId()
  }

  /** The writer, when nothing is known to be wrong. */
  get link(): Writer | undefined {
    return this.#writer?.isUsable ? this.#writer : undefined
  }

  /** The writer, once the main thread has one. Rejects with StoreUnavailable, at `deadlineMs` at the latest. */
  async writer(deadlineMs: number): Promise<Writer> {
    /* c8 ignore next: it was bound in the same moment */
    if (this.link) return this.link
    if (!this.#bound) {
      this.#bound = Promise.withResolvers()
      this.#post('bind')
    }
    return within(this.#bound.promise, deadlineMs)
  }

  /** Are the files still there? */
  check(): void {
    this.#post('check')
  }

  /** The writer did what it was asked for. */
  holds(): void {
    if (!this.#hasFailed) return
    this.#hasFailed = false
    this.#post('holds')
  }

  async close(): Promise<void> {
    this.#letGo()
    this.#main.close()
  }

  #take(message: ToBranch): void {
    if (message === 'release') {
      this.#letGo()
      this.#post('released')
    } else if ('bind' in message) this.#bind(message.bind)
    else this.#refuse(message.unavailable)
  }

  #bind({ writer, index, looker, ids, path }: Bind): void {
    try {
      this.reader ??= new Reader(path, ids, new WalIndex(index.descriptor, new IndexLock(index.lock, looker)))
      this.#writer?.close()
      this.#writer = new Writer(writer, (failed) => {
        this.#hasFailed = true
        this.#post({ failed })
      })
      this.#bound?.resolve(this.#writer)
      this.#bound = undefined
      /* c8 ignore next 3: the path is given to another file in the same moment */
    } catch (error) {
      this.#refuse((error as Error).message)
    }
  }

  #refuse(reason: string): void {
    this.#bound?.promise.catch(() => {})
    this.#bound?.reject(new StoreUnavailable('nothing-added', reason))
    this.#bound = undefined
  }

  /** The main thread is about to exchange the files, or to close them. */
  #letGo(): void {
    this.reader?.close()
    this.reader = undefined
    this.#writer?.close()
    this.#writer = undefined
  }

  #post(message: FromBranch): void {
    this.#main.postMessage(message)
  }
}
