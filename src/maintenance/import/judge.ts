// Judges what adding plants comes to, without adding them: ids are compared with those of earlier records, and of the
// store, if there is one.
import { DatabaseSync } from 'node:sqlite'
import type { Entry, Outcome, Store } from '../../store/engine.ts'
import { sameItem } from '../../store/format/same-item.ts'

export type Judge = (entries: Entry[]) => Promise<Outcome[]>

/** Makes a function that judges a batch, with what it judged before in mind. */
export function makeJudge(findItems: Store['find']): Judge {
  // Items with an id, in a temporary file that SQLite removes by itself.
  const items = new DatabaseSync('')
  items.exec('CREATE TABLE items (id INTEGER PRIMARY KEY, item TEXT NOT NULL)')
  const insert = items.prepare('INSERT INTO items VALUES (?, ?) ON CONFLICT DO NOTHING')
  const find = items.prepare('SELECT item FROM items WHERE id = ?')
  const judge = ({ id, item }: Entry): Outcome => {
    if (id === undefined || insert.run(id, item).changes === 1) return 'added'
    return sameItem(String(find.get(id)?.item), item) ? 'replayed' : 'conflict'
  }
  return async (entries) => {
    const stored = await findItems(entries.flatMap(({ id }) => id ?? []))
    for (const [id, item] of stored) insert.run(id, item)
    return entries.map(judge)
  }
}
