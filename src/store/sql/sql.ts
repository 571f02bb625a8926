// SQL, which both engines speak. What they keep beside the log is written once here: queries with parameters $1, $2, …,
// and integers within ±(2^53−1).
import type { Notes, Store } from '../engine.ts'

export type Value = string | number | null
export type Row = Record<string, Value>

/** Queries and statements of an open store. They reject with StoreUnavailable. */
export interface Sql {
  select(text: string, values?: Value[]): Promise<Row[]>
  /** Runs one writing statement durably; resolves to the number of rows that it changed. */
  execute(text: string, values?: Value[]): Promise<number>
}

/** A store whose engine speaks SQL. */
export type SqlStore = Store & { readonly sql: Sql }

export type Select = Sql['select']

/**
 * What differs between engines. `join`: makes the expression that joins texts of plants in the log's order; `blob`: that
 * of such a text as it is stored, which may be no UTF-8; `schemaFaults`: the query for what keeps the log append-only and
 * its ids unique, and is missing; `putEpoch`: the statement that writes an epoch of another store; `integrity`: the query
 * of the database's own check, whose only row is `ok` when there is no fault.
 */
export type Dialect = {
  join(text: string, separator: string): string
  blob(text: string): string
  readonly schemaFaults: string
  readonly putEpoch: string
  readonly integrity?: string
}

/** Makes what finds the items of plants with some ids. */
export function makeFind(select: Select): Store['find'] {
  return async (ids) => {
    // PostgreSQL refuses an empty list; NULL equals no id.
    const rows = await select(`SELECT id, item FROM plants WHERE id IN (${['NULL', ...ids]})`)
    return new Map(rows.map(({ id, item }) => [Number(id), String(item)]))
  }
}

/** Makes what reads notes whose keys begin in a way. */
export function makeReadNotes(select: Select): Notes['read'] {
  return async (prefix) => {
    const rows = await select("SELECT key, value FROM meta WHERE key LIKE $1 || '%'", [prefix])
    return new Map(rows.map(({ key, value }) => [String(key), String(value)]))
  }
}
