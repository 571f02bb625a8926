// A SQLite file opened for reading only, while other processes may write to it.
import { StoreUnavailable, type Value } from '../store.ts'
import type { StoreView } from '../view.ts'
import { existingPath } from './files/path.ts'
import { openStoreFile, type ReadOnlyFile, readVersion } from './files/read-only.ts'
import { named, sqliteDialect } from './sqlite-dialect.ts'
import { readSqliteStatus } from './sqlite-status.ts'

/** Opens a view. Throws StoreRefused. */
export function openSqliteView(url: string): StoreView {
  const path = existingPath(url)
  return { ...makeView(openStoreFile(path)), readStatus: async () => readSqliteStatus(path) }
}

/** Makes a view of an open file, apart from its status. */
export function makeView({ db, checkSame }: ReadOnlyFile): Omit<StoreView, 'readStatus'> {
  async function select<R>(text: string, values: Value[] = []): Promise<R[]> {
    try {
      const statement = db.prepare(text)
      statement.setReturnArrays(true)
      const rows = statement.all(named(values))
      checkSame?.()
      return rows as R[]
    } catch (cause) {
      throw new StoreUnavailable('unread', (cause as Error).message, { cause })
    }
  }
  return {
    dialect: sqliteDialect,
    version: readVersion(db),
    select,
    // A range of the primary key is read, and so joined, in its order. Blobs are not decoded.
    async join(expression, { after, last }, separator) {
      const texts = `CAST(group_concat(${expression}, $3) AS BLOB)`
      const text = `SELECT count(*), coalesce(${texts}, '') FROM plants WHERE position > $1 AND position <= $2`
      const [row] = await select(text, [after, last, separator])
      const [count, joined] = row as unknown as [number, Uint8Array]
      return { count, text: Buffer.from(joined) }
    },
    close: async () => db.close(),
  }
}
