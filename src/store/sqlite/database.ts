// Opens the SQLite file for writing: what is there is looked at before anything is changed, then its schema is brought
// up to date. Runs in the writer thread.
import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sqliteLockMs } from '../../limits.ts'
import { identify, isSameFile, resolveLinks } from '../../runtime/same-file.ts'
import { syncDirectoryOf } from '../../runtime/sync.ts'
import { checkUpgrade, migrations, refuseInUse } from '../format/migrations.ts'
import { StoreMissing, StoreRefused } from '../store.ts'
import { isBusy } from './errors.ts'
import { type FileIds, OpenFiles } from './files/files.ts'
import { makeOwnFile, makePrivate } from './files/modes.ts'
import {
  applicationId,
  belongsToAnother,
  isStore,
  openReadOnly,
  pragma,
  readVersion,
} from './files/read-only.ts'
import type { ThreadOptions } from './writer/writer-messages.ts'

/** The write-ahead log is copied into the file when it has this many pages, of 4 KiB each. */
const checkpointPages = 4000

export type OpenDatabase = { db: DatabaseSync; files: OpenFiles }

/** `known`: the files that must be there, after an I/O error. Throws StoreRefused, or what SQLite says. */
export function openDatabase({ path, mustExist, keepsSchema }: ThreadOptions, known?: FileIds): OpenDatabase {
  if (known) refuseOthers(new OpenFiles(path, known))
  const before = identify(path)
  /* c8 ignore next: it goes in the same moment */
  if (!before && mustExist) throw new StoreMissing(resolve(path))
  if (before) bringUpToDate(path, mustExist, keepsSchema)
  else makeOwnFile(path)
  const db = new DatabaseSync(path, { timeout: sqliteLockMs })
  try {
    configure(db)
    migrate(db, path)
    if (known) rewriteLog(db)
    makePrivate(resolveLinks(path))
    syncDirectoryOf(resolveLinks(path))
    const files = new OpenFiles(path, known)
    refuseOthers(files)
    /* c8 ignore next 2: the path is given to another file in the same moment */
    if (before && !isSameFile(before, files.known.ids[0]))
      throw new StoreRefused(`${path} was replaced while it was opened`)
    return { db, files }
    /* c8 ignore next 4: a file that fails while it is opened: test/store/disk.slow.ts */
  } catch (error) {
    db.close()
    throw error
  }
}

function refuseOthers(files: OpenFiles): void {
  const fault = files.findFault()
  /* c8 ignore next: files that go between a look and the opening of a writer that is started again */
  if (fault !== undefined) throw new StoreRefused(fault)
}

/** Looks at a file without changing it. Returns its schema's version; 0: there is none yet. */
function inspect(path: string): number {
  if (statSync(path).size === 0) return 0
  const { db, checkSame } = openReadOnly(path)
  try {
    if (checkSame) throw belongsToAnother(path)
    refuseForeign(db, path)
    return readVersion(db)
  } finally {
    db.close()
  }
}

/** Throws StoreRefused when it holds something that is not ours, or is of a newer version. */
function refuseForeign(db: DatabaseSync, path: string): void {
  if (!isStore(db) && db.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.n !== 0)
    throw new StoreRefused(`${path} is not a plant store`)
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

/**
 * SQLite gives one connection all of a file only when no other one has it open, as each service has. Then nothing else
 * comes in until the schema is the new one, which an older service refuses.
 */
function bringUpToDate(path: string, mustExist: boolean, keepsSchema?: boolean): void {
  const version = inspect(path)
  if (version === 0 && mustExist) throw new StoreRefused(`${path} is not a plant store`)
  if (version === 0 || version >= migrations.length) return
  checkUpgrade(version, keepsSchema)
  const db = new DatabaseSync(path, { timeout: sqliteLockMs })
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE')
    migrate(db, path)
  } catch (error) {
    // Another process of this version may have been first.
    /* c8 ignore next: a disk that fails in that moment */
    if (!isBusy(error)) throw error
    if (inspect(path) < migrations.length) refuseInUse('another process has it open')
  } finally {
    db.close()
  }
}

/** Another process may have brought it up to date, or further, since it was inspected: what the lock holder sees counts. */
function migrate(db: DatabaseSync, path: string): void {
  if (readVersion(db) === migrations.length) return
  db.exec('BEGIN IMMEDIATE')
  refuseForeign(db, path)
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
