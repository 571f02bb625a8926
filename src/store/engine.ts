// The interface of an engine: a folder that implements this file, and a row in `engines.ts`. All code above is shared.
import type { Logger } from 'pino'

export type Engine = {
  readonly name: string
  /** The beginning of its URLs, for messages; `scheme` matches them. */
  readonly prefix: string
  readonly scheme: RegExp
  /** The fault of a URL of its scheme, as the end of a sentence, without passwords. */
  findFault?(url: string): string | undefined
  /** The path of the database file. Throws StoreRefused if it is a directory. Absent if the database is not a file. */
  path?(url: string): string
  /** Opens a store. Rejects with StoreRefused for a foreign database, or one of another schema version. */
  open(url: string, options: OpenOptions): Promise<Store>
}

/**
 * `mode`: `read` opens the database read-only: no database, table or row is created or changed (SQLite may create its
 * `-wal` and `-shm`), and writing methods reject; `write` is for a command, `serve` for a service. `create`: create a
 * missing database (not with `read`); without it, `open` rejects with StoreMissing. `mustBeAlone`: create no tables in a
 * database that has other tables. `made`: called when a database was created. `lost`: called when plants that were read
 * before are missing from the log.
 */
export type OpenOptions = {
  logger: Logger
  mode: 'read' | 'write' | 'serve'
  create?: boolean
  mustBeAlone?: boolean
  made?: () => void
  lost?: () => void
}

/** Methods reject with StoreUnavailable while the database is unavailable. */
export interface Store {
  /** Identifies this store: 128 random bits in base64url. A copy has the same. */
  readonly id: string
  readonly log: PlantLog
  readonly tokens: TokenTable
  /** Reads the notes whose keys begin with a prefix: texts by key. A note holds the progress of an import. */
  notes(prefix: string): Promise<Map<string, string>>
  /** Reads the first plants at positions `after` + 1 to `last`, as they are stored: at most `most`. */
  plants(after: number, last: number, most: number): Promise<StoredPlant[]>
  /** Finds the items of the plants with these ids. */
  find(ids: number[]): Promise<Map<number, string>>
  status(): Promise<EngineStatus>
  /** Checks of the database and its schema, by the name of the part that is checked. Each resolves to faults in words. */
  readonly checks: Record<string, () => Promise<string[]>>
  /** Takes over the id of another store, to copy it; false if this one has another id and holds plants or tokens. */
  adopt(id: string): Promise<boolean>
  /** Appends one or more rows of another store unchanged, marks included, durably and in one transaction. */
  put(plants: StoredPlant[]): Promise<void>
  /** Waits for running work, then closes the database. */
  close(): Promise<void>
}

/** A plant in the log: the JSON text that responses contain, and the id that makes a retry safe. */
export type Entry = { item: string; id: number | undefined }

/** The outcome of an entry. `replayed`: the id existed with an equal item; `conflict`: with another one. */
export type Outcome = 'added' | 'replayed' | 'conflict'

/**
 * The end of the durable log: the last position (0: empty) and its mark ('' if empty), and the marks of the positions
 * that were asked for. A mark is 8 random bytes in base64url, one per commit attempt, in each row that it adds. Two logs
 * whose row n has the same mark hold the same plants up to n.
 */
export type Head = {
  readonly position: number
  readonly mark: string
  /** Undefined for a position beyond the head; '' for 0. */
  markOf(position: number): string | undefined
}

export interface PlantLog {
  /**
   * Appends a batch, atomically and in order; resolves once it is on stable storage, with exactly one outcome per entry.
   * `deadlineMs` (of `performance.now()`; default: `storeLimitMs` from now): the engine gives up then. `note`: changed in
   * the same transaction, also if nothing is added; the batch fails with `nothing-added` unless its value was `before`.
   * An empty batch succeeds only if the store is writable now. Rejects with StoreUnavailable: `nothing-added` if that is
   * certain, `unknown` otherwise.
   */
  append(entries: Entry[], options?: { deadlineMs?: number; note?: NoteChange }): Promise<Outcome[]>
  /** Reads the head and the marks of `positions` at once, with every batch that any replica acknowledged before. */
  head(positions?: readonly number[]): Head | Promise<Head>
  /**
   * Reads the JSON array of the items at positions `after` + 1 to `last`, in UTF-8, into a new buffer, which the caller
   * may change. Rejects with StoreUnavailable (`unread`) unless the log holds all of them and row `last` has this mark.
   */
  read(after: number, last: number, mark: string): Buffer | Promise<Buffer>
}

/** A token. Only the SHA-256 of its text is stored, in hex. Times are milliseconds since 1970. */
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
export interface TokenTable {
  find(id: string): Promise<Token | undefined>
  /** Reads all tokens in the order in which they were created. */
  all(): Promise<Token[]>
  /** Adds a token; false if its id exists, or its name is that of a token that is valid when this one is created. */
  add(token: Token): Promise<boolean>
  /**
   * Adds a token that replaces a former one, which then expires at `expiresAt`. False if at the time `at` the former
   * one is not valid, or has both an expiry and a newer valid token of its name.
   */
  replace(former: Pick<Token, 'id' | 'expiresAt'>, token: Token, at: number): Promise<boolean>
  /** False if the token does not exist or is revoked. */
  revoke(id: string, at: number): Promise<boolean>
  /** Records the use of a token, unless a use after `since` is recorded. A crash may undo it. */
  touch(id: string, at: number, since: number): Promise<void>
  /** Adds a token of another store, or merges it: it is revoked if it is in either store, and the earlier expiry applies. */
  put(token: Token): Promise<void>
}

/** A change of a note from the value `before` (empty if the note does not exist) to `value`. */
export type NoteChange = { key: string; before: string; value: string }

/** A plant as it is stored; `checksum`: CRC-32, see `sql/checksum.ts`; `mark`: of the commit that added it. */
export type StoredPlant = {
  position: number
  id: number | null
  item: string
  mark: string
  checksum: number
}

/** A standby as its primary sees it. Null: not visible to the role of the URL, or not measured yet. */
export type Standby = {
  name: string
  address: string | null
  state: string | null
  sync: string | null
  lagBytes: number | null
  lagSeconds: number | null
}

/** `server`: host:port of the one that answered; `unsafe`: settings of it that can lose plants. */
export type ClusterStatus = {
  server: string
  role: 'primary' | 'standby'
  standbys: Standby[]
  unsafe: string[]
}

/** The status of a database. `bytes`: size on disk; `cluster`: null where there is no server. */
export type EngineStatus = {
  engineVersion: string
  bytes: number
  cluster: ClusterStatus | null
}
