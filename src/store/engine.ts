// Everything that an engine gives. An engine is a folder that implements this page, and a row of `engines.ts`; all
// above it is written once. Members with a `?` may be left out; each says what is so without it.
import type { MessagePort } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { Epoch, Epochs } from './epochs.ts'
import type { EngineStatus } from './status.ts'

export type Engine = {
  readonly name: string
  /** The beginning of its URLs, for messages; `scheme` matches them. */
  readonly prefix: string
  readonly scheme: RegExp
  /** The fault of a URL of its scheme, as the end of a sentence, without values, which may be passwords. Default: none. */
  findFault?(url: string): string | undefined
  /** The path of the database. Throws StoreRefused when the URL names none. Default: it is no file. */
  path?(url: string): string
  /** Opens a store, and migrates its schema. Rejects with StoreRefused for a foreign or a newer database. */
  open(url: string, options: StoreOptions): Promise<Store>
  /** Opens a store for reading. Rejects with StoreRefused when there is none, or one of a newer version. */
  view(url: string): Promise<StoreView>
}

/** Methods reject with StoreUnavailable when the database cannot be used now. */
export interface Store {
  /** Identifies this store for ever, on every replica: 128 random bits in base64url. */
  readonly id: string
  readonly log: PlantLog
  readonly tokens: TokenNotes
  readonly notes: Notes
  /** Finds the items of the plants with these ids. */
  find(ids: number[]): Promise<Map<number, string>>
  /** Resolves when the store is writable now. */
  ready(): Promise<void>
  /** Waits for running work, then closes the database. */
  close(): Promise<void>
  /**
   * Makes a port through which another thread opens the same store (see `StoreOptions`); undefined: it opens the store by
   * its URL. Default: one thread serves, and more THREADS are refused.
   */
  share?: (() => MessagePort | undefined) | undefined
  /** What the servers of the database said last, while none can be used. Default: nothing. */
  fault?(): string | undefined
  /** Names settings of the database's server that can lose acknowledged plants. Default: none. */
  unsafeSettings?(): Promise<string[]>
  /** Default: `copy --to` and `verify --repair` are refused. */
  readonly upkeep?: Upkeep
}

/** A plant in the log: the JSON text that responses contain, and the id that makes a retry safe. */
export type Entry = { item: string; id: number | undefined }

/** The outcome of an entry. `replayed`: the id existed with an equal item; `conflict`: with another one. */
export type Outcome = 'added' | 'replayed' | 'conflict'

/** The last position of the log (0: empty), and the epochs that own its positions, both of one moment. */
export type Head = { readonly position: number; readonly epochs: Epochs }

export interface PlantLog {
  /**
   * Appends a batch, atomically and in order; resolves once it is on stable storage, with exactly one outcome per
   * entry. Gives up at `deadlineMs` (of `performance.now()`; default: `storeLimitMs` from now). Rejects with
   * StoreUnavailable: `nothing-added` when that is certain, `unknown` otherwise. `note` is changed in the same
   * transaction, also when nothing is added; the batch fails unless it has the value `before`.
   */
  append(entries: Entry[], deadlineMs?: number, note?: NoteChange): Promise<Outcome[]>
  /** Reads the head of the durable log, which counts every batch that any replica acknowledged before the call. */
  head(): Head | Promise<Head>
  /**
   * Reads the JSON array of the items at positions `after` + 1 to `last`, in UTF-8; the caller owns the buffer. `epoch`
   * owns position `last` (see `Head`). Rejects with StoreUnavailable (`unread`) unless the log holds all of them in
   * that epoch.
   */
  read(after: number, last: number, epoch: string): Buffer | Promise<Buffer>
}

/** A token. Only the SHA-256 of its text is stored, in hex. Times are milliseconds since 1970; null: not so far. */
export type Token = {
  id: string
  name: string
  hash: string
  scopes: string[]
  createdAt: number
  expiresAt: number | null
  lastUsedAt: number | null
  revokedAt: number | null
}

/** Each change is one step, on stable storage when it resolves. A token is valid until it is revoked or expires. */
export interface TokenNotes {
  find(ids: string[]): Promise<Token[]>
  /** Finds the tokens with a name, valid or not, in the order in which they were created. */
  named(name: string): Promise<Token[]>
  /** Counts all tokens, and those that are valid at a time. */
  count(at: number): Promise<{ all: number; valid: number }>
  /** Adds a token; false if its id exists, or its name is that of a token that is valid when this one is created. */
  add(token: Token): Promise<boolean>
  /**
   * Adds a token in place of a former one, which ends at `expiresAt`. False if at the time `at` that is not valid, or
   * ends, and a newer one of its name is valid.
   */
  replace(former: Pick<Token, 'id' | 'expiresAt'>, token: Token, at: number): Promise<boolean>
  /** False when the token does not exist or is revoked. */
  revoke(id: string, at: number): Promise<boolean>
  /** Notes the use of a token, unless one after `since` is noted. */
  touch(id: string, at: number, since: number): Promise<void>
}

/** The change of a note from the value `before` to `value`; empty: there is none, or will be none. */
export type NoteChange = { key: string; before: string; value: string }

/** Texts by key: what imports have consumed, and which copy into the store is running. */
export interface Notes {
  /** Reads the notes whose keys begin so. */
  read(prefix: string): Promise<Map<string, string>>
  /** Changes a note durably; false when its value is not `before`. */
  change(change: NoteChange): Promise<boolean>
}

/** The positions `after` + 1 to `last`. */
export type Positions = { after: number; last: number }

/** A plant as it is stored; `checksum`: see `format/checksum.ts`, null in a row of version 1.0.0. */
export type StoredPlant = { position: number; id: number | null; item: string; checksum: number | null }

/** What a store that is written has for the commands `copy --to` and `verify --repair`. */
export interface Upkeep {
  /** Reads the first plants of a range. */
  plants(range: Positions, most: number): Promise<StoredPlant[]>
  tokens(): Promise<Token[]>
  /** Takes over the id of another store; false if this one has another id and holds plants or tokens. */
  adopt(id: string): Promise<boolean>
  /** Adds a token, or brings it up to date: revoked here or there means revoked, and the earlier expiry counts. */
  putToken(token: Token): Promise<void>
  /** Replaces all epochs. */
  putEpochs(epochs: Epoch[]): Promise<void>
  /** Adds checksums and segments that are missing up to a head. Only for a store that was verified. */
  repair(head: number, signal?: AbortSignal): Promise<{ repaired: number; segments: number }>
}

/** A fault of a store. `position`: of the plant with the fault; absent for a fault of the whole store. */
export type Damage = { position?: number; detail: string }

/**
 * A store opened for reading only: no database is created, migrated or written. The log only grows, so its contents up to
 * a head stay the same while a service adds plants. Methods reject with StoreUnavailable when they meet an unreadable part.
 */
export interface StoreView {
  /** The number of the schema's last migration, older if no service has opened the store since an upgrade. */
  readonly version: number
  /** Rejects when nothing at all can be read. */
  probe(): Promise<void>
  id(): Promise<string>
  /** Reads the last position of the log; 0 if it is empty. */
  head(): Promise<number>
  /** Finds a position before which the log does not end, where its end cannot be read. Default: 0. */
  headAround?(): Promise<number>
  /** Reads the epochs in the order in which they began; none in a store of version 1.0.0. */
  epochs(): Promise<Epoch[]>
  plants: Upkeep['plants']
  /**
   * Joins the items of a range in the log's order, with their ids as last members or without. Resolves to their number,
   * and to the text in UTF-8, byte for byte as it is stored.
   */
  join(range: Positions, separator: string, withId?: boolean): Promise<{ count: number; text: Buffer }>
  find: Store['find']
  /** Reads all tokens in the order in which they were created. */
  tokens(): Promise<Token[]>
  notes: Notes['read']
  /** Finds what only the engine can: by the part that is looked at. Default: none. */
  readonly checks?: Record<string, () => Promise<Damage[]>>
  /** Finds faults of what is kept beside the plants of a range. Default: nothing is. */
  checkRange?(range: Positions): Promise<Damage[]>
  /** Finds faults of the whole file, at the end, as it takes long. Default: none. */
  checkFile?(): Promise<Damage[]>
  readStatus(): Promise<EngineStatus>
  close(): Promise<void>
}

/**
 * `mustExist`: refuse a missing database instead of creating it. `keepsSchema`: refuse an older version instead of
 * migrating it. `isService`: it is open to be served, and not for a command. `reconnected`: called for each connection made again. `lost`:
 * called with the number of plants that were in the log and are no more. `port`: from `share` of the store, in the thread
 * that has it open. `isFurther`: this process has the store open already, and has warned of its settings. `made`: called
 * when there was no store, and one was made. `mustBeAlone`: make none beside the tables of others. `patienceMs`: time to
 * wait for a server.
 */
export type StoreOptions = {
  logger: Logger
  mustExist?: boolean
  keepsSchema?: boolean
  isService?: boolean
  patienceMs?: number
  made?: () => void
  reconnected?: () => void
  lost?: (plants: number) => void
  isFurther?: boolean
  port?: MessagePort | undefined
  mustBeAlone?: boolean
}
