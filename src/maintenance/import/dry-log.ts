// A log that keeps nothing, for an input that is only checked. Ids are compared with those of the store, and of earlier
// records.
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { sameItem } from '../../store/same-item.ts'
import type { Entry, Outcome, Store } from '../../store/store.ts'

export class DryLog {
  readonly #store: Store | undefined
  /** Items of records with an id, in a temporary file that SQLite removes by itself. */
  readonly #items = new DatabaseSync('')
  readonly #insert: StatementSync
  readonly #select: StatementSync

  /** Without a store, ids are compared with those of earlier records alone. */
  constructor(store: Store | undefined) {
    this.#store = store
    this.#items.exec('CREATE TABLE items (id INTEGER PRIMARY KEY, item TEXT NOT NULL)')
    this.#insert = this.#items.prepare('INSERT INTO items VALUES (?, ?) ON CONFLICT DO NOTHING')
    this.#select = this.#items.prepare('SELECT item FROM items WHERE id = ?')
  }

  /** Returns the outcomes that the entries would have. */
  async append(entries: Entry[]): Promise<Outcome[]> {
    // PostgreSQL refuses an empty list; NULL equals no id.
    const ids = ['NULL', ...entries.flatMap(({ id }) => id ?? [])]
    const rows = await this.#store?.sql.select(`SELECT id, item FROM plants WHERE id IN (${ids})`)
    const known = new Map((rows ?? []).map(({ id, item }) => [Number(id), String(item)]))
    return entries.map((entry) => this.#judge(entry, known))
  }

  #judge({ id, item }: Entry, known: Map<number, string>): Outcome {
    if (id === undefined) return 'added'
    const stored = known.get(id)
    if (stored === undefined && this.#insert.run(id, item).changes === 1) return 'added'
    return sameItem(stored ?? String(this.#select.get(id)?.item), item) ? 'replayed' : 'conflict'
  }

  close(): void {
    this.#items.close()
  }
}
