// A SQLite file opened for reading only, while other processes may write to it; and its status from outside.
import { statSync } from 'node:fs'
import { resolveLinks } from '../../runtime/same-file.ts'
import { StoreUnavailable, type Value } from '../store.ts'
import type { EngineStatus, StoreView } from '../view.ts'
import { findService } from './files/find-service.ts'
import { existingPath } from './files/path.ts'
import { type ReadOnlyFile, readVersion } from './files/read-only.ts'
import { openSettled } from './files/settle.ts'
import { named, sqliteDialect } from './sqlite-dialect.ts'

/** Opens a view. Throws StoreRefused. */
export function openSqliteView(url: string): StoreView {
  const path = existingPath(url)
  return { ...makeView(openSettled(path)), readStatus: async () => readStatus(path) }
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

function readStatus(path: string): EngineStatus {
  const target = resolveLinks(path)
  const size = (name: string) => statSync(name, { throwIfNoEntry: false })?.size ?? 0
  return {
    engineVersion: String(process.versions.sqlite),
    bytes: size(target) + size(`${target}-wal`),
    service: findService(target),
    cluster: null,
  }
}
