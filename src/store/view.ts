// A store opened to be read, and nothing else: nothing is made, migrated or locked, and no writer is needed. The log only
// grows, so what it holds up to a head stays the same, whatever a service adds meanwhile.
import type { Value } from './store.ts'

/** The positions `after` + 1 to `last`. */
export type Range = { after: number; last: number }

/** `count`: how many plants there are; `texts`: the joined texts, in UTF-8, byte for byte as they are stored. */
export type Joined = { count: number; texts: Buffer[] }

export interface StoreView {
  readonly engine: 'SQLite' | 'PostgreSQL'
  /** The number of the schema's last migration: a store that no service has opened since an upgrade has an older one. */
  readonly version: number
  /** Portable SQL that reads, with parameters $1, $2, …; each row is an array. Rejects with StoreUnavailable. */
  select<R extends Value[]>(text: string, values?: Value[]): Promise<R[]>
  /**
   * The texts that each of the SQL expressions gives for the plants of a range, in the log's order, joined. One text for
   * many plants costs a fraction of one for each. Rejects with StoreUnavailable.
   */
  join(expressions: string[], range: Range, separator: string): Promise<Joined>
  close(): Promise<void>
}

/**
 * Opens the store at a `file:` (SQLite) or `postgres://` URL. Throws StoreRefused when there is none, or one that a newer
 * version made.
 */
export async function openView(url: string): Promise<StoreView> {
  if (url.startsWith('file:')) return (await import('./sqlite/view.ts')).openSqliteView(url)
  return (await import('./postgres/view.ts')).openPostgresView(url)
}

/** Where the log ends; 0: it is empty. */
export async function findHead(view: StoreView): Promise<number> {
  const [row] = await view.select<[number]>('SELECT coalesce(max(position), 0) FROM plants')
  return (row as [number])[0]
}
