// A SQLite file opened for reading only, while other processes may write to it; and its status from outside.
import { statSync } from 'node:fs'
import { resolveLinks } from '../../runtime/same-file.ts'
import type { StoreView } from '../engine.ts'
import { StoreUnavailable } from '../errors.ts'
import type { Row, Select, Value } from '../sql/sql.ts'
import { makeSqlView } from '../sql/sql-view.ts'
import type { EngineStatus } from '../status.ts'
import { findService } from './files/find-service.ts'
import { existingPath } from './files/path.ts'
import { readVersion } from './files/read-only.ts'
import { openSettled } from './files/settle.ts'
import { named, sqliteDialect } from './sqlite-dialect.ts'

/** Opens a view. Throws StoreRefused. */
export function openSqliteView(url: string): StoreView {
  const path = existingPath(url)
  const { db, checkSame } = openSettled(path)
  const select: Select = async (text, values = []) => {
    try {
      const statement = db.prepare(text)
      statement.setReturnArrays(true)
      const names = statement.columns().map(({ name }) => name)
      const rows = statement.all(named(values)) as unknown as Value[][]
      checkSame?.()
      return rows.map((values) => {
        const row: Row = {}
        for (const [index, name] of names.entries()) row[name] = values[index] as Value
        return row
      })
    } catch (cause) {
      throw new StoreUnavailable('unread', (cause as Error).message, { cause })
    }
  }
  return {
    ...makeSqlView(select, sqliteDialect, readVersion(db)),
    readStatus: async () => readStatus(path),
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
