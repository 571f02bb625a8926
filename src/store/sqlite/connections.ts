// The connections of this process to one SQLite file: a reader here, a writer in its thread. They are opened together,
// and anew when the path no longer names the files that they have open. The thread alone is started again when it ends.
import { renameSync, statSync } from 'node:fs'
import type { MessagePort } from 'node:worker_threads'
import type { Logger } from 'pino'
import { storeCloseMs, storeLimitMs } from '../../limits.ts'
import { type StoreOptions, StoreRefused, StoreUnavailable } from '../store.ts'
import { Condition } from './condition.ts'
import { areSameFiles, type FileIds, fingerprint, isOrphan, resolveLinks } from './files.ts'
import { IndexLock } from './index-lock.ts'
import { ThreadLink } from './link.ts'
import type { Bind, Failure, ThreadOptions } from './messages.ts'
import { Reader } from './reader.ts'
import { Shares } from './shares.ts'
import { WalIndex } from './wal-index.ts'
import { within } from './within.ts'

/** How often the files are looked at when nobody writes, and lost ones are looked for. */
const lookMs = 1000
/** A file that was refused is tried again after this long, or at once when it has changed. */
const retryMs = 5000

export class Connections {
  readonly #path: string
  readonly #logger: Logger
  readonly #condition: Condition
  readonly #reconnected: () => void
  /** Open from the first opening to the end, but for the moments in which lost files are exchanged. */
  reader: Reader | undefined
  #id: string | undefined
  #link: ThreadLink | undefined
  readonly #lock = new IndexLock()
  #index: WalIndex | undefined
  readonly #shares: Shares
  #ids: FileIds | undefined
  /** Why the files that are open are not those of the path. */
  #lost: string | undefined
  #isBroken = false
  #isClosed = false
  #starting: Promise<ThreadLink> | undefined
  #refused: { print: string; untilMs: number; error: Error } | undefined
  #looking: NodeJS.Timeout | undefined

  constructor(path: string, { logger, reconnected = () => {} }: StoreOptions) {
    this.#path = path
    this.#logger = logger
    this.#condition = new Condition(logger, 'the database takes plants again')
    this.#reconnected = reconnected
    this.#shares = new Shares({
      bind: async (looker) => ({
        ...this.#describe(await this.writer(performance.now() + storeLimitMs)),
        looker,
      }),
      failed: (failure) => this.#note(failure),
      check: () => this.check(),
      holds: () => this.holds(),
      ended: (looker) => this.#lock.removeLooker(looker),
    })
  }

  /** Throws StoreRefused. Resolves to the id of the store, which every later opening must find again. */
  async open({ mustExist = false }: Pick<StoreOptions, 'mustExist'>): Promise<string> {
    await this.#start({ path: this.#path, mustExist })
    this.#id = (this.reader as Reader).readId()
    this.#looking = setInterval(() => this.#look(), lookMs).unref()
    return this.#id
  }

  /** The writer thread, when nothing is wrong. */
  get link(): ThreadLink | undefined {
    return this.#link?.isUsable && this.#lost === undefined && !this.#isClosed ? this.#link : undefined
  }

  /** The writer thread, started again when need be. Rejects with StoreUnavailable, at `deadlineMs` at the latest. */
  async writer(deadlineMs: number): Promise<ThreadLink> {
    if (this.#isClosed) throw new StoreUnavailable('nothing-added', 'the store is closed')
    /* c8 ignore next: it was started in the same moment */
    if (this.link) return this.link
    this.#starting ??= this.#restart().finally(() => {
      this.#starting = undefined
    })
    return within(this.#starting, deadlineMs)
  }

  /** Are the files still there? */
  check(): void {
    /* c8 ignore next: a read that fails while a good file is looked for */
    if (this.#lost !== undefined) return
    const found = this.reader?.findFault()
    /* c8 ignore next: who looks first, this or the thread, is a matter of moments */
    if (found) this.#lose(found.fault)
  }

  /** The writer did what it was asked for. */
  holds(): void {
    this.#condition.holds()
  }

  /** A port at which another thread opens the store (see branch.ts), once it is open here. */
  share(): MessagePort {
    return this.#shares.add(this.#lock.addLooker())
  }

  /** Waits for what is under way, but not for a disk that does not answer. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#looking)
    /* c8 ignore next: a start that fails while the store is closed */
    await this.#starting?.catch(() => {})
    const timer = Promise.withResolvers<void>()
    const timeout = setTimeout(timer.resolve, storeCloseMs)
    /* c8 ignore next: a thread that hangs, and has the files open still */
    const gone = this.#letGo().catch(() => {})
    await Promise.race([gone, timer.promise])
    clearTimeout(timeout)
  }

  #look(): void {
    if (this.#lost === undefined) this.check()
    // Its faults are in the log already.
    else this.writer(performance.now() + lookMs).catch(() => {})
  }

  #lose(fault: string): void {
    if (this.#lost !== undefined) return
    this.#lost = fault
    this.#condition.fails(`${fault}: no plants are taken until a good file is there`)
    // The thread saves what it can when it looks at the files itself.
    this.#link?.send({ probe: true }, performance.now() + lookMs).catch(() => {})
  }

  async #restart(): Promise<ThreadLink> {
    if (this.#lost === undefined) this.check()
    try {
      if (this.#lost !== undefined) return await this.#reopen()
      await this.#link?.ended
      return await this.#start({ path: this.#path, mustExist: true, id: this.#id, repair: this.#isBroken })
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error
      this.#condition.fails((error as Error).message)
      throw new StoreUnavailable('nothing-added', (error as Error).message, { cause: error })
    }
  }

  /** As long as no other file is there the lost one stays open: it can be read, and its inode is not given to another. */
  async #reopen(): Promise<ThreadLink> {
    const print = fingerprint(this.#path)
    if (print === undefined) throw new StoreUnavailable('nothing-added', `${this.#path} is gone`)
    const former = this.#refused
    /* c8 ignore next: asked again within moments */
    if (former?.print === print && performance.now() < former.untilMs) throw former.error
    const isStale = isOrphan(this.#path, this.#ids)
    await this.#letGo()
    if (isStale) this.#setAside()
    try {
      const options = {
        path: this.#path,
        mustExist: true,
        id: this.#id,
        repair: this.#isBroken,
        verify: true,
      }
      const link = await this.#start(options)
      this.#lost = this.#refused = undefined
      this.#condition.holds()
      return link
    } catch (error) {
      this.#refused = { print, untilMs: performance.now() + retryMs, error: error as Error }
      throw error
    }
  }

  /** A `-wal` of the former file, which nobody could empty, would be played into the present one. */
  #setAside(): void {
    const from = `${resolveLinks(this.#path)}-wal`
    const to = `${from}.former`
    if (!statSync(from, { throwIfNoEntry: false })?.size) return
    renameSync(from, to)
    this.#logger.warn(`${from} belongs to the file that was there before: it is ${to} now`)
  }

  async #start(options: ThreadOptions): Promise<ThreadLink> {
    const link = new ThreadLink(options, {
      failed: (failure) => this.#note(failure),
      ended: (waiting, error) => this.#noteEnd(waiting, error),
    })
    this.#link = link
    try {
      const ids = await link.opened
      if (this.reader && !areSameFiles(ids, this.#ids))
        /* c8 ignore next: the path is given to another file in the same moment */
        throw new StoreRefused(`${this.#path} is another file now`)
      this.#ids = ids
      this.#index ??= WalIndex.open(this.#path, this.#lock)
      this.reader ??= new Reader(this.#path, ids, this.#index)
      link.share({ descriptor: this.#index.descriptor, lock: this.#lock.memory })
      this.#isBroken = false
      if (this.#id !== undefined) this.#reconnected()
      return link
    } catch (error) {
      await link.close()
      if (!this.reader) this.#closeIndex()
      throw error
    }
  }

  /** What another thread needs to work on the files that are open now. */
  #describe(link: ThreadLink): Omit<Bind, 'looker'> {
    const index = { descriptor: (this.#index as WalIndex).descriptor, lock: this.#lock.memory }
    return { writer: link.openPort(), index, ids: this.#ids as FileIds, path: this.#path }
  }

  /** The readers go first: the writer, as the last, empties the write-ahead log into the file. */
  async #letGo(): Promise<void> {
    await this.#shares.release()
    this.reader?.close()
    this.reader = undefined
    await this.#link?.close()
    this.#closeIndex()
  }

  #closeIndex(): void {
    this.#index?.close()
    this.#index = undefined
  }

  #note({ failed, code, lost, broken }: Failure): void {
    if (broken) this.#isBroken = true
    if (lost) this.#lose(failed)
    else this.#condition.fails(`the database failed: ${failed}`, { code })
  }

  #noteEnd(waiting: number, err: Error | undefined): void {
    this.#lock.end()
    /* c8 ignore next: a fault of the thread that is not known yet */
    if (err) this.#logger.error({ err }, 'the writer thread failed')
    if (waiting > 0)
      this.#logger.error({ waiting }, 'the writer thread ended; the next plant starts it again')
  }
}
