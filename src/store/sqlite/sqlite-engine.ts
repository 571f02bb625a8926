// The embedded engine: one SQLite file. Reads run in this thread, in microseconds; writes run in a separate thread, so
// that a slow disk never blocks the event loop. Files that were moved or deleted stay open: they may be the last copy.
import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { resolveLinks } from '../../file-system.ts'
import type { OpenOptions, Outcome, PlantLog } from '../engine.ts'
import { StoreRefused } from '../errors.ts'
import { type Checks, refuseWrite, type Sql, type SqlStore } from '../sql/sql.ts'
import { makeSqlStore } from '../sql/sql-store.ts'
import { makeDirectory, sqlitePath } from './path.ts'
import { openReadOnly, refusal } from './read-only.ts'
import { makeReader, type Reader } from './reader.ts'
import { startWriter, type Writer } from './writer.ts'

/** Time that a read waits for a lock, which is held only during recovery. The wait blocks the event loop. */
const readLockMs = 200
/** Time that `close` waits for a disk that does not respond. */
const closeMs = 1500

/** Opens the SQLite file at a `file:` URL, relative to the working directory. Rejects with StoreRefused. */
export async function openSqlite(url: string, options: OpenOptions): Promise<SqlStore> {
  const { mode, create = false } = options
  const path = sqlitePath(url)
  const isNew = statSync(path, { throwIfNoEntry: false }) === undefined
  if (isNew && !create) throw new StoreRefused(`no database file at ${resolve(path)}`, { isMissing: true })
  if (mode === 'read') return makeStore(path, makeReader(openReadOnly(path)))
  if (create) makeDirectory(dirname(path))
  const writer = await startWriter({ path, create }, options.logger)
  if (isNew) options.onCreate?.()
  try {
    const db = new DatabaseSync(path, { readOnly: true, timeout: readLockMs })
    writer.files.check()
    return await makeStore(path, makeReader(db), writer)
  } catch (error) {
    await writer.close()
    throw refusal(path, error as Error)
  }
}

/** Creates a store; without a writer it is read-only. */
async function makeStore(path: string, reader: Reader, writer?: Writer): Promise<SqlStore> {
  const select: Sql['select'] = async (text, values) => reader.select(text, values)
  const send: Writer['send'] = writer?.send ?? refuseWrite
  const append: PlantLog['append'] = async (entries, { deadlineMs, notes } = {}) => {
    const items = entries.map(({ item }) => item)
    return (await send({ items, ids: entries.map(({ id }) => id), notes }, deadlineMs)) as Outcome[]
  }
  const execute: Sql['execute'] = async (text, values = []) => (await send({ text, values })) as number
  const [row] = await select("SELECT value FROM meta WHERE key = 'store'")
  return {
    id: String(row?.value),
    log: { append, head: reader.head, read: reader.read },
    ...makeSqlStore({ select, execute }, checks),
    async status() {
      const bytes = sizeOf(path) + sizeOf(`${resolveLinks(path)}-wal`)
      return { engineVersion: String(process.versions.sqlite), bytes, cluster: null }
    },
    async close() {
      // The last connection to close checkpoints and deletes the log at the path. If the files have changed, that may
      // be the log of another process, so the reader stays open until the writer has closed.
      const isLost = writer?.files.findFault() !== undefined
      if (!isLost) reader.close()
      const ended = writer?.close()
      // Writing back a lost log may fail, so it is awaited without a limit.
      await (isLost ? ended : Promise.race([ended, sleep(closeMs, undefined, { ref: false })]))
      reader.close()
    },
  }
}

const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0

const checks: Checks = {
  // SQLite reports several faults in one string, one per line, after a heading with the name of the database.
  'the file': `
    SELECT 'integrity check: ' || value AS fault
    FROM pragma_integrity_check, json_each('[' || replace(json_quote(integrity_check), '\\n', '","') || ']')
    WHERE value <> 'ok' AND value NOT LIKE '***%' LIMIT 10`,
  'the schema': `
    SELECT column1 || ' is missing from the schema' AS fault
    FROM (VALUES ('plants_id'), ('plants_no_update'), ('plants_no_delete'))
    WHERE column1 NOT IN (SELECT name FROM sqlite_schema WHERE tbl_name = 'plants')`,
  // The integrity check does not count the entries of a partial index.
  'the index of ids': `
    SELECT 'plants_id has entries without plants' AS fault WHERE
      (SELECT count(id) FROM plants NOT INDEXED) < (SELECT count(*) FROM plants WHERE id IS NOT NULL)`,
}
