// The embedded engine: one SQLite file. Reads happen here, in microseconds; writes in a thread of their own, so that
// a slow disk never holds up the event loop.
import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { type Row, type Store, type StoreOptions, StoreRefused, type Value } from '../store.ts'
import { SqliteWriter } from './writer.ts'

/** Opens the SQLite file at a `file:` URL (relative to the working directory), making it when it is missing. */
export async function openSqlite(url: string, { logger, mustExist }: StoreOptions): Promise<Store> {
  const path = sqlitePath(url)
  if (mustExist && !existsSync(path)) throw new StoreRefused(`there is no file ${path}`)
  makeDirectory(dirname(path))
  const writer = new SqliteWriter(path, logger)
  await writer.ready()
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5000 })
  const head = db.prepare('SELECT coalesce(max(position), 0) FROM plants')
  head.setReturnArrays(true)
  // A range of the primary key is read in its order, and so joined in it.
  const read = db.prepare("SELECT group_concat(item, ',') FROM plants WHERE position > ? AND position <= ?")
  read.setReturnArrays(true)
  return {
    id: String(db.prepare("SELECT value FROM meta WHERE key = 'store'").get()?.value),
    log: {
      append: (entries) => writer.append(entries),
      head: () => (head.get() as unknown as [number])[0],
      read: (after, count) => (read.get(after, after + count) as unknown as [string | null])[0] ?? '',
    },
    sql: {
      select: async (text, values = []) => db.prepare(text).all(named(values)) as Row[],
      execute: (text, values = []) => writer.execute(text, named(values)),
    },
    async close() {
      db.close()
      await writer.close()
    },
  }
}

/** `$1` is a named parameter in SQLite, not a numbered one. */
function named(values: Value[]): Record<string, Value> {
  return Object.fromEntries(values.map((value, index) => [index + 1, value]))
}

function sqlitePath(url: string): string {
  const path = url.startsWith('file://') ? fileURLToPath(url) : decodeURIComponent(url.slice('file:'.length))
  if (path === '' || path.startsWith(':')) throw new StoreRefused(`DATABASE_URL names no file: ${url}`)
  return path
}

function makeDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new StoreRefused(`cannot make the directory ${directory}: ${(error as Error).message}`)
  }
}
