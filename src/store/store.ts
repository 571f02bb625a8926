// The seam between the service and its databases: a log of plants with three verbs, and plain SQL for the little
// else there is (tokens). An engine is one file that provides this; everything above it is written once.
import type { Logger } from 'pino'
import { openPostgres } from './postgres.ts'
import { openSqlite } from './sqlite.ts'

/** A plant as the log keeps it: the JSON text that every response shows, and the id that makes a retry safe. */
export type Entry = { item: string; id: number | undefined }

/** What became of an entry. `replayed`: the id was there with the same item; `conflict`: with another one. */
export type Outcome = 'added' | 'replayed' | 'conflict'

export interface PlantLog {
  /**
   * Appends a batch, atomically and in order; resolves once it is on stable storage, with one outcome an entry.
   * Rejects with an `unavailable` problem when nothing was appended, or when that cannot be told.
   */
  append(entries: Entry[]): Promise<Outcome[]>
  /** How many plants are durably in the log. */
  head(): number | Promise<number>
  /** The items at positions after+1 to after+count, joined by commas. */
  read(after: number, count: number): string | Promise<string>
}

export type Value = string | number | null
export type Row = Record<string, Value>

/** Portable SQL with parameters $1, $2, …; integers within ±(2^53−1). */
export interface Sql {
  select(text: string, values?: Value[]): Promise<Row[]>
  /** Runs one statement that changes something, durably; resolves to the number of rows it changed. */
  execute(text: string, values?: Value[]): Promise<number>
}

export interface Store {
  /** Names this store for ever, on every replica: 128 random bits in base64url. */
  readonly id: string
  readonly log: PlantLog
  readonly sql: Sql
  close(): Promise<void>
}

/** The database cannot be used as it is; the message is one line for the operator. */
export class StoreRefused extends Error {}

/** `mustExist`: a database that is not there is refused, not made. */
export type StoreOptions = { logger: Logger; mustExist?: boolean }

/**
 * Opens the store at a `file:` (SQLite) or `postgres://` URL, and brings its schema up to date.
 * Throws StoreRefused when what is there is no plant store, or a newer one.
 */
export function openStore(url: string, options: StoreOptions): Promise<Store> {
  return url.startsWith('file:') ? openSqlite(url, options) : openPostgres(url, options)
}
