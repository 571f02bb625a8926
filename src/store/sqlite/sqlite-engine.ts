// The embedded engine: one SQLite file. Reads run here, in microseconds; writes run in a separate thread, so that a
// slow disk never blocks the event loop. Files stay open whatever happens to the path: they may be the last copy.
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { sqliteLockMs, storeCloseMs, storeLimitMs } from '../../limits.ts'
import { giveToOwner } from '../../runtime/new-file.ts'
import { identify } from '../../runtime/same-file.ts'
import { syncDirectoryOf } from '../../runtime/sync.ts'
import { withTimeout } from '../../runtime/with-timeout.ts'
import type { Outcome, PlantLog, StoreOptions } from '../engine.ts'
import { StoreRefused } from '../errors.ts'
import type { Sql, SqlStore } from '../sql/sql.ts'
import { makeSqlStore } from '../sql/sql-store.ts'
import { existingPath, sqlitePath } from './files/path.ts'
import { openReader, type Reader } from './reader.ts'
import { named, sqliteDialect } from './sqlite-dialect.ts'
import { joinWriter, startWriter, type Writer } from './writer/writer-handle.ts'
import type { Work } from './writer/writer-messages.ts'

/**
 * Opens the SQLite file at a `file:` URL, relative to the working directory; creates it when it is missing. `close`
 * waits for open requests, but not for a disk that does not answer.
 */
export async function openSqlite(url: string, options: StoreOptions): Promise<SqlStore> {
  const { logger, port, mustExist, made } = options
  const path = mustExist ? existingPath(url) : sqlitePath(url)
  if (!mustExist && !port) makeDirectory(dirname(path))
  const isNew = !port && identify(path) === undefined
  const writer = port ? joinWriter(path, port) : await startWriter(path, options)
  if (isNew) made?.()
  try {
    return makeStore(openReader(writer.files, logger), writer)
    /* c8 ignore next 4: the path is given to another file in the same moment */
  } catch (error) {
    await writer.close()
    throw error
  }
}

function makeStore(reader: Reader, writer: Writer): SqlStore {
  const write = (work: Work, deadlineMs = performance.now() + storeLimitMs) =>
    writer.requests.send(work, deadlineMs)
  const append: PlantLog['append'] = async (entries, deadlineMs, note) => {
    const items = entries.map(({ item }) => item)
    const ids = entries.map(({ id }) => id)
    return (await write({ items, ids, note }, deadlineMs)) as Outcome[]
  }
  const execute: Sql['execute'] = async (text, values = []) =>
    (await write({ text, values: named(values) })) as number
  return {
    id: reader.id,
    log: { append, head: reader.head, read: reader.read },
    ...makeSqlStore({ select: reader.select, execute }, sqliteDialect),
    // A batch of no plants needs all that others need.
    async ready() {
      await append([], performance.now() + sqliteLockMs)
    },
    share: writer.share,
    async close() {
      // Close the readers first: when the writer closes last, SQLite checkpoints the write-ahead log.
      reader.close()
      await withTimeout(writer.close(), storeCloseMs, () => {})
    },
  }
}

/**
 * Creates a directory, and those above it, on stable storage; returns those that were made, the innermost first. Throws
 * StoreRefused.
 */
export function makeDirectory(directory: string): string[] {
  const made: string[] = []
  for (let one = resolve(directory); !existsSync(one); one = dirname(one)) made.push(one)
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    for (const one of made.toReversed()) {
      giveToOwner(one)
      syncDirectoryOf(one)
    }
    return made
  } catch (error) {
    throw new StoreRefused(`cannot make the directory ${directory}: ${(error as Error).message}`)
  }
}
