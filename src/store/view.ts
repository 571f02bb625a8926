// A store opened to be read, and nothing else: nothing is made, migrated or locked, and no writer is needed. The log only
// grows, so what it holds up to a head stays the same, whatever a service adds meanwhile.
import type { EngineStatus } from './engine-status.ts'
import type { Row, Value } from './store.ts'

/** The positions `after` + 1 to `last`. */
export type Range = { after: number; last: number }

/** `count`: how many plants there are; `texts`: the joined texts, in UTF-8, byte for byte as they are stored. */
export type Joined = { count: number; texts: Buffer[] }

/**
 * Expressions that differ between engines. `joinedItems`: joins the items of plants in the log's order; `locks`:
 * how many rows there are for a batch to lock, of which there must be 1; `guards`: what keeps the log append-only and its
 * ids unique, and the query that finds it; `isStandby`: 1 where other servers write; `integrity`: the
 * database's own check, whose rows say what is broken.
 */
export type Dialect = {
  readonly joinedItems: string
  readonly locks: string
  readonly guards: { readonly names: readonly string[]; readonly text: string }
  readonly isStandby: string
  readonly integrity?: string
}

export interface StoreView {
  readonly dialect: Dialect
  /** The number of the schema's last migration: a store that no service has opened since an upgrade has an older one. */
  readonly version: number
  /** Portable SQL that reads, with parameters $1, $2, …; each row is an array. Rejects with StoreUnavailable. */
  select<R extends Value[]>(text: string, values?: Value[]): Promise<R[]>
  /**
   * The texts that each of the SQL expressions gives for the plants of a range, in the log's order, joined. One text for
   * many plants costs a fraction of one for each. Rejects with StoreUnavailable.
   */
  join(expressions: string[], range: Range, separator: string): Promise<Joined>
  /** The state of the database as its engine sees it. */
  readStatus(): Promise<EngineStatus>
  close(): Promise<void>
}

/** The last position of the log; 0: it is empty. */
export async function findHead(view: StoreView): Promise<number> {
  const [row] = await view.select<[number]>('SELECT coalesce(max(position), 0) FROM plants')
  return (row as [number])[0]
}

/** The rows of `SELECT columns rest`, by the names of their columns. */
export async function selectRows(
  view: StoreView,
  columns: readonly string[],
  rest: string,
  values: Value[] = [],
): Promise<Row[]> {
  const rows = await view.select(`SELECT ${columns} ${rest}`, values)
  return rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index] as Value])))
}
