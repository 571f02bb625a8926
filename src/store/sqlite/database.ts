// Opens the SQLite file for writing: what is there is looked at before anything is changed, then its schema is brought
// up to date. Runs in the writer thread.
import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { syncDirectoryOf } from '../../files/sync.ts'
import { sqliteLockMs } from '../../limits.ts'
import { checkVersion, migrations } from '../migrations.ts'
import { StoreMissing, StoreRefused } from '../store.ts'
import { type FileId, type FileIds, identify, isSameFile, resolveLinks } from './files.ts'
import type { ThreadOptions } from './messages.ts'
import { makeOwnFile, makePrivate } from './modes.ts'

/** 'plnt': how a file is known as ours (SQLite, pragma application_id). */
const applicationId = 0x706c6e74
export const headerBytes = 100
/** Of 4 KiB each: the write-ahead log is copied into the file when it is this long. */
const checkpointPages = 4000

export type OpenDatabase = { db: DatabaseSync; ids: FileIds }

/** Throws StoreRefused, or what SQLite says. */
export function openDatabase(options: ThreadOptions): OpenDatabase {
  const { path } = options
  const before = identify(path)
  /* c8 ignore next: it goes in the same moment */
  if (!before && options.mustExist) throw new StoreMissing(resolve(path))
  if (before) inspect(options)
  else makeOwnFile(path)
  const db = new DatabaseSync(path, { timeout: sqliteLockMs })
  try {
    configure(db)
    migrate(db)
    if (options.repair) rewriteLog(db)
    makePrivate(resolveLinks(path))
    syncDirectoryOf(resolveLinks(path))
    return { db, ids: identifyOpen(path, before) }
    /* c8 ignore next 4: a file that fails while it is opened: test/faults */
  } catch (error) {
    db.close()
    throw error
  }
}

/** Looks at a file without changing it. */
function inspect({ path, id, verify }: ThreadOptions): void {
  const { size } = statSync(path)
  /* c8 ignore next: an empty file where a store was */
  if (size === 0 && id === undefined) return
  // SQLite takes what is shorter than its header for an empty file.
  if (size < headerBytes) throw new StoreRefused(`${path} is not a plant store`)
  const file = new DatabaseSync(path, { readOnly: true, timeout: sqliteLockMs })
  try {
    if (!isStore(file) && file.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.n !== 0)
      throw new StoreRefused(`${path} is not a plant store`)
    if (id !== undefined && readId(file) !== id) throw new StoreRefused(`${path} holds another store now`)
    /* c8 ignore next: damage that shows only when all of a file is read */
    if (verify && pragma(file, 'quick_check(1)') !== 'ok') throw new StoreRefused(`${path} is damaged`)
  } finally {
    file.close()
  }
}

/** Whether it is a plant store at all. Throws StoreRefused when it is one of a newer version. */
export function isStore(db: DatabaseSync): boolean {
  checkVersion(readVersion(db))
  return pragma(db, 'application_id') === applicationId
}

/** The number of the schema's last migration. */
export function readVersion(db: DatabaseSync): number {
  return Number(pragma(db, 'user_version'))
}

export function readId(db: DatabaseSync): string {
  return String(db.prepare("SELECT value FROM meta WHERE key = 'store'").get()?.value)
}

/** A setting that SQLite does not take, for example on a file system without shared memory, is said by its value. */
function configure(db: DatabaseSync): void {
  const settings: [name: string, value: string | number, expected: string | number][] = [
    ['journal_mode', 'WAL', 'wal'],
    // FULL: a commit returns once the write-ahead log is on stable storage (sqlite.org/pragma.html#pragma_synchronous).
    ['synchronous', 'FULL', 2],
    ['fullfsync', 'ON', 1],
    ['wal_autocheckpoint', checkpointPages, checkpointPages],
  ]
  for (const [name, value, expected] of settings) {
    db.exec(`PRAGMA ${name} = ${value}`)
    const actual = pragma(db, name)
    /* c8 ignore next: no SQLite that we know does so */
    if (actual !== expected) throw new StoreRefused(`SQLite keeps ${name} at ${actual} instead of ${value}`)
  }
}

function migrate(db: DatabaseSync): void {
  if (readVersion(db) >= migrations.length) return
  db.exec('BEGIN IMMEDIATE')
  for (const { sqlite } of migrations.slice(readVersion(db))) db.exec(sqlite)
  db.exec(`PRAGMA user_version = ${migrations.length}; PRAGMA application_id = ${applicationId}`)
  db.prepare("INSERT INTO meta VALUES ('store', ?) ON CONFLICT DO NOTHING").run(
    randomBytes(16).toString('base64url'),
  )
  db.exec('COMMIT')
}

/**
 * After a failed fsync the file system may show what the disk does not hold, and say nothing of it again: all of the
 * write-ahead log is written into the file and synced before more is taken (wiki.postgresql.org/wiki/Fsync_Errors).
 */
function rewriteLog(db: DatabaseSync): void {
  const result = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()
  /* c8 ignore next: another process reads in the same moment */
  if (result?.busy !== 0) throw new StoreRefused('the write-ahead log cannot be rewritten: it is in use')
}

/** The files that were opened, unless the path was given to others meanwhile. */
function identifyOpen(path: string, before: FileId | undefined): FileIds {
  const [main, wal] = [identify(path), identify(`${resolveLinks(path)}-wal`)]
  if (main && wal && (!before || isSameFile(before, main))) return { main, wal }
  /* c8 ignore next: the path is given to another file in the same moment */
  throw new StoreRefused(`${path} was replaced while it was opened`)
}

export function pragma(db: DatabaseSync, name: string): unknown {
  const statement = db.prepare(`PRAGMA ${name}`)
  statement.setReturnArrays(true)
  return (statement.get() as unknown as [unknown] | undefined)?.[0]
}
