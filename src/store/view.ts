// A store opened for reading only: no database is created, migrated or written. The log only grows, so its contents up
// to a head stay the same while a service adds plants.
import type { Row, Value } from './store.ts'

/** The positions `after` + 1 to `last`. */
export type Range = { after: number; last: number }

/**
 * Expressions that differ between engines. `joinedItems`: joins items in the log's order; `locks`: counts the rows for
 * batches to lock, of which there must be 1; `guards`: triggers and indexes that keep the log append-only and its ids
 * unique, with the query that finds those there are; `isStandby`: 1 on a standby, otherwise 0; `integrity`: the query
 * of the database's own check, whose only row is `ok` when there is no fault.
 */
export type Dialect = {
  readonly joinedItems: string
  readonly locks: string
  readonly guards: { readonly names: readonly string[]; readonly text: string }
  readonly isStandby: string
  readonly integrity?: string
}

/** The services on a database. `running`: null when unknown; `by`: names of the processes or clients that use it. */
export type ServiceStatus = { running: boolean | null; by: string[] }

/** A standby as its primary sees it. Null: not visible to the role of the URL, or not measured yet. */
export type Standby = {
  name: string
  address: string | null
  state: string | null
  sync: string | null
  lagBytes: number | null
  lagSeconds: number | null
}

/** Plants that a service has listed and that were lost below it: those `after` a position, to the `last`. `at`: RFC 3339. */
export type Loss = { after: number; last: number; at: string }

/** `server`: host:port of the one that answered; `unsafe`: settings of it that can lose plants; `loss`: the latest. */
export type ClusterStatus = {
  server: string
  role: 'primary' | 'standby'
  standbys: Standby[]
  unsafe: string[]
  loss: Loss | null
}

/** The status of a database. `bytes`: size on disk. */
export type EngineStatus = {
  engineVersion: string
  bytes: number
  service: ServiceStatus
  /** Null where there is no server. */
  cluster: ClusterStatus | null
}

export interface StoreView {
  readonly dialect: Dialect
  /** The number of the schema's last migration, older if no service has opened the store since an upgrade. */
  readonly version: number
  /** Runs a portable query with parameters $1, $2, …; rows are arrays. Rejects with StoreUnavailable. */
  select<R extends Value[]>(text: string, values?: Value[]): Promise<R[]>
  /**
   * Evaluates an SQL expression for the plants of a range, and joins the texts in the log's order, which costs a
   * fraction of a text per plant. Resolves to the number of plants, and to the text in UTF-8, byte for byte as it is
   * stored. Rejects with StoreUnavailable.
   */
  join(expression: string, range: Range, separator: string): Promise<{ count: number; text: Buffer }>
  /** Reads the status of the database. */
  readStatus(): Promise<EngineStatus>
  close(): Promise<void>
}

/** Reads the last position of the log; 0 if it is empty. */
export async function findHead(view: StoreView): Promise<number> {
  const [row] = await view.select<[number]>('SELECT coalesce(max(position), 0) FROM plants')
  return (row as [number])[0]
}

/** Reads the rows of `SELECT columns rest` as objects. */
export async function selectRows(
  view: StoreView,
  columns: readonly string[],
  rest: string,
  values: Value[] = [],
): Promise<Row[]> {
  const rows = await view.select(`SELECT ${columns} ${rest}`, values)
  return rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index] as Value])))
}
