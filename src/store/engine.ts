// The interface of an engine, which is a folder that implements this file, and a row in `engines.ts`.
import { crc32 } from 'node:zlib'
import type { Logger } from 'pino'

export type Engine = {
  readonly name: string
  /** The prefix of its URLs, for messages; `scheme` matches the URLs. */
  readonly prefix: string
  readonly scheme: RegExp
  /** Returns the fault of a URL that matches `scheme`, as the end of a sentence without passwords. */
  findFault?(url: string): string | undefined
  /** The path of the database file. Throws StoreRefused if it is a directory. Absent if the database is not a file. */
  path?(url: string): string
  /** Opens a store. Rejects with StoreRefused for a foreign database, or an unsupported schema version. */
  open(url: string, options: OpenOptions): Promise<Store>
}

/**
 * `mode`: `read` opens the database read-only: no database, table or row is created or changed (SQLite may create its
 * `-wal` and `-shm`), and writing methods reject. `create`: create a missing store (not with `read`); without it, `open`
 * rejects with StoreRefused. `mustBeAlone`: create no tables in a database that has other tables. `onCreate`: called
 * after the database file or the PostgreSQL tables were created. `onLoss`: called when plants that were read before are
 * missing from the log (PostgreSQL).
 */
export type OpenOptions = {
  logger: Logger
  mode: 'read' | 'write'
  create?: boolean
  mustBeAlone?: boolean
  onCreate?: () => void
  onLoss?: () => void
}

/** Methods reject with StoreUnavailable while the database is unavailable. */
export interface Store {
  /** Identifies this store: 128 random bits in base64url. A copy has the same id. */
  readonly id: string
  readonly log: PlantLog
  readonly tokens: TokenTable
  /** Reads the notes: values by key, which starts with `import/`. A note contains the progress of an import. */
  notes(): Promise<Map<string, string>>
  /** Reads the rows of plants at positions `after` + 1 to `last`; at most `most` of them. */
  plants(after: number, last: number, most: number): Promise<StoredPlant[]>
  /** Finds the items of plants by id. */
  find(ids: number[]): Promise<Map<number, string>>
  status(): Promise<EngineStatus>
  /** Checks of the database and its schema, by the name of the checked part. Each resolves to messages about faults. */
  readonly checks: Record<string, () => Promise<string[]>>
  /** Takes over the id of another store, to copy it; false if this store has another id and plants or tokens. */
  adopt(id: string): Promise<boolean>
  /** Appends one or more rows of another store unchanged, marks included, durably and in one transaction. */
  put(plants: StoredPlant[]): Promise<void>
  /** Waits for work in progress, then closes the database. */
  close(): Promise<void>
}

/** A plant in the log: the JSON text that responses contain, and the id that makes a retry safe. */
export type Entry = { item: string; id: number | undefined }

/** The outcome of an entry. `replayed`: the id existed with an equal item; `conflict`: with a different item. */
export type Outcome = 'added' | 'replayed' | 'conflict'

/**
 * The end of the durable log: the last position (0: empty) and its mark ('' if empty), and the marks of the requested
 * positions. A mark is 8 random bytes in base64url, generated for each commit attempt and stored in each row that it
 * adds. Two logs with the same mark in row n contain the same plants up to n.
 */
export type Head = {
  readonly position: number
  readonly mark: string
  /** Undefined for a position beyond the head; '' for 0. */
  markOf(position: number): string | undefined
}

export interface PlantLog {
  /**
   * Appends a batch, atomically and in order; resolves once it is on stable storage, with exactly one outcome per
   * entry. `deadlineMs` (of `performance.now()`; default: `storeLimitMs` from now): when the engine gives up. `notes`:
   * changed in the same transaction, even if nothing is added; if a value was not `before`, the batch fails with
   * `nothing-added`. An empty batch succeeds only if the store is writable. Rejects with StoreUnavailable:
   * `nothing-added` if that is certain, `unknown` otherwise.
   */
  append(entries: Entry[], options?: { deadlineMs?: number; notes?: NoteChange[] }): Promise<Outcome[]>
  /** Reads the head and the marks of `positions` in one snapshot, with every batch acknowledged by any replica. */
  head(positions?: readonly number[]): Head | Promise<Head>
  /**
   * Reads the JSON array of the items at positions `after` + 1 to `last`, in UTF-8, into a new buffer, which the caller
   * may change. Rejects with StoreUnavailable (`unread`) if one of them is missing or row `last` has another mark.
   */
  read(after: number, last: number, mark: string): Buffer | Promise<Buffer>
}

/** A token as it is stored. `hash`: the SHA-256 of the credential, in hex. Times are milliseconds since 1970. */
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

/** Each change is atomic and (except `touch`) durable when it resolves. A token is valid until revoked or expired. */
export interface TokenTable {
  find(id: string): Promise<Token | undefined>
  /** Reads all tokens in the order in which they were created. */
  all(): Promise<Token[]>
  /** Reads the tokens with this id, name or hash, in the same order. There may be too many tokens to read all in time. */
  search(text: string, hash?: string): Promise<Token[]>
  /** Adds a token; false if its id exists, or if another token with its name is valid at its `createdAt`. */
  add(token: Token): Promise<boolean>
  /**
   * Adds a token that replaces a former token, which then expires at `expiresAt`. False if, at the time `at`, the
   * former token is not valid, or has an expiry and a newer valid token has the same name.
   */
  replace(former: Pick<Token, 'id' | 'expiresAt'>, token: Token, at: number): Promise<boolean>
  /** False if the token does not exist or is revoked. */
  revoke(id: string, at: number): Promise<boolean>
  /** Records the use of a token if none between `since` and `at` is recorded. A crash may undo it. */
  touch(id: string, at: number, since: number): Promise<void>
  /** Adds or merges a token of another store. A revocation in either store and the earlier expiry apply. */
  put(token: Token): Promise<void>
}

/** A change of a note from the value `before` ('' if the note does not exist) to `value`. */
export type NoteChange = { key: string; before: string; value: string }

/** A row of the log, without its checksum. `mark`: of the commit that added it. */
export type PlantRow = { position: number; id: number | null; item: string; mark: string }
/** A row of the log. `checksum`: CRC-32, see `checksumOf`. */
export type StoredPlant = PlantRow & { checksum: number }

/** Returns position, id (empty if there is none), mark and item, separated by tabs. */
export const textOf = ({ position, id, mark, item }: PlantRow) => `${position}\t${id ?? ''}\t${mark}\t${item}`

/** CRC-32 over the text of a row in UTF-8. `verify` compares it to find corrupt rows. */
export const checksumOf = (row: PlantRow) => crc32(textOf(row))

/** True if a plant does not match its checksum. */
export const isDamaged = (plant: StoredPlant) => checksumOf(plant) !== plant.checksum

/** A standby as its primary sees it. Null: not visible to the role of the URL, or not measured yet. */
export type Standby = {
  name: string
  address: string | null
  state: string | null
  sync: string | null
  lagBytes: number | null
  lagSeconds: number | null
}

/** The status of a database. `bytes`: size on disk; `cluster`: null for a file; `server`: host:port that was queried. */
export type EngineStatus = {
  engineVersion: string
  bytes: number
  cluster: { server: string; role: 'primary' | 'standby'; standbys: Standby[] } | null
}
