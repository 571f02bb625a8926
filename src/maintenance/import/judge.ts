// Judges what adding plants comes to, without adding them: ids are compared with those of earlier records, and of the
// store, if there is one.
import { DatabaseSync } from 'node:sqlite'
import { type Entry, type Outcome, type Row, sameItem } from '../../store/store.ts'

/** Runs the query `SELECT columns rest` on the store. */
export type Select = (columns: string[], rest: string) => Promise<Row[]>

export type Judge = (entries: Entry[]) => Promise<Outcome[]>

/** Makes a function that judges a batch, with what it judged before in mind. */
export function makeJudge(select: Select): Judge {
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
    // PostgreSQL refuses an empty list; NULL equals no id.
    const ids = ['NULL', ...entries.flatMap(({ id }) => id ?? [])]
    const stored = await select(['id', 'item'], `FROM plants WHERE id IN (${ids})`)
    for (const { id, item } of stored) insert.run(Number(id), String(item))
    return entries.map(judge)
  }
}
