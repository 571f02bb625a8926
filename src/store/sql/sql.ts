// The SQL interface of both engines: parameters $1, $2, … (?1, ?2, … in SQLite), and integers within ±(2^53−1).
import type { NoteChange, Store } from '../engine.ts'
import { StoreUnavailable } from '../errors.ts'

export type Value = string | number | null
export type Row = Record<string, Value>

/** Queries and statements of an open store. They reject with StoreUnavailable. */
export interface Sql {
  select(text: string, values?: Value[]): Promise<Row[]>
  /**
   * Runs one writing statement; resolves to the number of changed rows, on stable storage. A minor statement must be
   * safe to repeat: on PostgreSQL it delays no other statement, and a crash may undo it.
   */
  execute(text: string, values?: Value[], isMinor?: boolean): Promise<number>
}

/** A store of an engine with SQL. */
export type SqlStore = Store & { readonly sql: Sql }

/** Queries for faults, by the name of the checked part. Each row describes a `fault`. */
export type Checks = Record<string, string>

/** Replaces the writing methods of a store that is opened to read. */
export async function refuseWrite(): Promise<never> {
  throw new StoreUnavailable('nothing-added', 'the database is open read-only')
}

/** Returns the statement that changes a note. It changes one row, or none if the value is not `before`. */
export function writeNote({ key, before, value }: NoteChange): { text: string; values: string[] } {
  const insert = 'INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING'
  if (before === '') return { text: insert, values: [key, value] }
  return { text: 'UPDATE meta SET value = $2 WHERE key = $1 AND value = $3', values: [key, value, before] }
}
