// A log that keeps nothing, for an input that is only checked. Ids are compared with those of the store, and of earlier
// records.
import { DatabaseSync } from 'node:sqlite'
import { type Entry, type Outcome, type PlantLog, type Store, sameItem } from '../../store/store.ts'

export type DryLog = Pick<PlantLog, 'append'> & { close(): void }

/** Without a store, ids are compared with those of earlier records alone. */
export function makeDryLog(store: Store | undefined): DryLog {
  // Items with an id, in a temporary file that SQLite removes by itself.
  const items = new DatabaseSync('')
  items.exec('CREATE TABLE items (id INTEGER PRIMARY KEY, item TEXT NOT NULL)')
  const insert = items.prepare('INSERT INTO items VALUES (?, ?) ON CONFLICT DO NOTHING')
  const select = items.prepare('SELECT item FROM items WHERE id = ?')
  const judge = ({ id, item }: Entry): Outcome => {
    if (id === undefined || insert.run(id, item).changes === 1) return 'added'
    return sameItem(String(select.get(id)?.item), item) ? 'replayed' : 'conflict'
  }
  return {
    async append(entries) {
      // PostgreSQL refuses an empty list; NULL equals no id.
      const ids = ['NULL', ...entries.flatMap(({ id }) => id ?? [])]
      const stored = await store?.sql.select(`SELECT id, item FROM plants WHERE id IN (${ids})`)
      for (const { id, item } of stored ?? []) insert.run(Number(id), String(item))
      return entries.map(judge)
    },
    close: () => items.close(),
  }
}
