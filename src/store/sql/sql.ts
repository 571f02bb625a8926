// The SQL that both engines understand: queries with parameters $1, $2, … (in SQLite ?1, ?2, …), and integers within
// ±(2^53−1).
import type { Store } from '../engine.ts'

export type Value = string | number | null
export type Row = Record<string, Value>

/** Queries and statements of an open store. They reject with StoreUnavailable. */
export interface Sql {
  select(text: string, values?: Value[]): Promise<Row[]>
  /** Runs one writing statement; resolves to the number of rows that it changed, on stable storage. */
  execute(text: string, values?: Value[]): Promise<number>
}

/** A store whose engine speaks SQL. */
export type SqlStore = Store & { readonly sql: Sql }

/** The differences between the engines. */
export type Dialect = {
  /** The query for missing parts of the schema: those that keep the log append-only and its ids unique. */
  readonly schemaFaults: string
  /** The query of the database's own check, whose only row is `ok` if there is no fault. */
  readonly integrity?: string
  /** The function that makes a row `value` of each element of a JSON array. */
  readonly elements: string
}
