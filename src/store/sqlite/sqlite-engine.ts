// The embedded engine: one SQLite file. Reads run here, in microseconds; writes run in a separate thread, so that a
// slow disk never blocks the event loop.
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import type { Logger } from 'pino'
import { sqliteLockMs, storeLimitMs } from '../../limits.ts'
import { Outage } from '../../logging/outage.ts'
import {
  type Checkpoint,
  type Entry,
  type Head,
  type Outcome,
  type Row,
  type Store,
  type StoreOptions,
  StoreRefused,
  StoreUnavailable,
  type Value,
} from '../store.ts'
import { type Connections, connect, connectTo } from './connections.ts'
import { codeOf } from './errors.ts'
import { existingPath, sqlitePath } from './files/path.ts'
import type { Reader } from './reader.ts'
import type { Done, FlatEntries, Work } from './writer/writer-messages.ts'

const readWords = {
  gone: 'the database cannot be read',
  still: 'the database still cannot be read',
  back: 'the database can be read again',
}

/** Opens the SQLite file at a `file:` URL, relative to the working directory; creates it when it is missing. */
export async function openSqlite(url: string, options: StoreOptions): Promise<Store> {
  const { logger, mustExist = false } = options
  const path = mustExist ? existingPath(url) : sqlitePath(url)
  if (!mustExist) makeDirectory(dirname(path))
  const connections = await connect(path, options)
  return { ...new SqliteStore(connections, logger), share: connections.share }
}

/** Opens a store that the main thread has open; `port` is from its `share`. Rejects with StoreUnavailable. */
export async function openSharedSqlite(
  url: string,
  port: MessagePort,
  { logger }: StoreOptions,
): Promise<Store> {
  return new SqliteStore(await connectTo(port, sqlitePath(url)), logger)
}

class SqliteStore implements Store {
  readonly id: string
  readonly #connections: Connections
  readonly #reading: Outage
  readonly log = {
    append: (entries: Entry[], deadlineMs?: number, mark?: Checkpoint) =>
      this.#append(entries, deadlineMs, mark),
    head: () => this.#head(),
    read: (after: number, last: number, epoch: string) =>
      this.#read((reader) => readItems(reader, after, last, epoch)),
  }
  readonly sql = {
    select: async (text: string, values: Value[] = []) =>
      this.#read((reader): Row[] => reader.select(text, named(values))),
    execute: async (text: string, values: Value[] = []) =>
      (await this.#write({ text, values: named(values) })) as number,
  }

  readonly ready = async () => {
    await this.#write({ probe: true }, performance.now() + sqliteLockMs)
  }
  readonly close = () => this.#connections.close()

  constructor(connections: Connections, logger: Logger) {
    this.id = connections.reader.readId()
    this.#connections = connections
    this.#reading = new Outage(logger, readWords)
  }

  async #append(entries: Entry[], deadlineMs?: number, mark?: Checkpoint): Promise<Outcome[]> {
    const outcomes = await this.#write({ append: flatten(entries), mark }, deadlineMs)
    if (Array.isArray(outcomes) && outcomes.length === entries.length) return outcomes
    /* c8 ignore next: an answer that the thread never gives */
    throw new StoreUnavailable('unknown', 'the writer thread did not say what became of each plant')
  }

  #write(work: Work, deadlineMs = performance.now() + storeLimitMs): Promise<Done> {
    return this.#connections.writer.send(work, deadlineMs)
  }

  /** Without a closure, unlike the others, as it is the most frequent call. */
  #head(): Head | Promise<Head> {
    try {
      const head = this.#connections.reader.head()
      this.#reading.reportRecovery()
      return head
      /* c8 ignore next 3: a disk that fails under the page with the head */
    } catch (error) {
      return Promise.reject(this.#unread(error))
    }
  }

  #read<T>(work: (reader: Reader) => T): T | Promise<T> {
    try {
      const result = work(this.#connections.reader)
      this.#reading.reportRecovery()
      return result
    } catch (error) {
      return Promise.reject(this.#unread(error))
    }
  }

  #unread(cause: unknown): StoreUnavailable {
    const { message } = cause as Error
    this.#reading.reportFailure(message, { code: codeOf(cause) })
    return new StoreUnavailable('unread', message, { cause, isLogged: true })
  }
}

function readItems(reader: Reader, after: number, last: number, epoch: string): Buffer {
  const array = reader.read(after, last, epoch)
  if (array === undefined)
    throw new Error(`the log does not hold plants ${after + 1} to ${last} of epoch ${epoch}`)
  return array
}

function flatten(entries: Entry[]): FlatEntries {
  const flat: FlatEntries = new Array(entries.length * 2)
  for (let i = 0; i < entries.length; i++) {
    const { item, id } = entries[i] as Entry
    flat[2 * i] = item
    flat[2 * i + 1] = id
  }
  return flat
}

/** Names the parameters: in SQLite `$1` is a name, not a number. */
function named(values: Value[]): Record<string, Value> {
  return Object.fromEntries(values.map((value, index) => [index + 1, value]))
}

/** Creates a directory. Throws StoreRefused. */
export function makeDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new StoreRefused(`cannot make the directory ${directory}: ${(error as Error).message}`)
  }
}
