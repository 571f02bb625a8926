// Opens the SQLite file for writing, in the writer thread: inspects it before changing anything, settles what it holds,
// and makes the tables that are missing.
import { randomBytes } from 'node:crypto'
import { chmodSync, openSync, statSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { StoreRefused } from '../errors.ts'
import { applicationId, steps } from '../sql/schema.ts'
import { giveToOwner, identify, isSameFile, resolveLinks, syncDirectoryOf } from './file-system.ts'
import { noteFiles, type OpenFiles } from './files.ts'
import { checkStore, openReadOnly, pragma, readVersion, refusal } from './read-only.ts'
import { lockMs, settle, untilFree } from './settle.ts'

/** The write-ahead log is checkpointed at this many pages of 4 KiB. */
const checkpointPages = 4000
/** Only the user of a database may read it, whatever the umask, as it holds the hashes of tokens. */
const ownMode = 0o600
const othersBits = 0o077

/** `create`: a missing file is made. */
export type WriterOptions = { path: string; create: boolean }
/** `descriptor`: of the database, for syncs. It is never closed, see `syncFile`. */
export type OpenDatabase = { db: DatabaseSync; files: OpenFiles; descriptor: number }

/** Opens the file. `former`: the database that it must be, after an I/O error. Throws StoreRefused. */
export function openDatabase({ path, create }: WriterOptions, former?: OpenDatabase): OpenDatabase {
  let db: DatabaseSync | undefined
  try {
    const before = identify(path)
    if (before) untilFree(() => inspect(path, create))
    else makeFile(path)
    const opened = new DatabaseSync(path, { timeout: lockMs })
    db = opened
    const descriptor = former?.descriptor ?? openSync(path, 'r+')
    untilFree(() => configure(opened))
    // Not waiting in SQLite, which backs off.
    opened.exec('PRAGMA busy_timeout = 0')
    settle(opened, path, descriptor)
    makeTables(opened, path)
    makePrivate(resolveLinks(path))
    syncDirectoryOf(resolveLinks(path))
    const files = former?.files ?? noteFiles(path)
    files.check()
    if (before && !isSameFile(before, files.ids[0]))
      throw new StoreRefused(`${path} was replaced while it was opened`)
    return { db: opened, files, descriptor }
  } catch (error) {
    db?.close()
    throw refusal(path, error as Error)
  }
}

/** Makes an empty file. SQLite gives `-wal` and `-shm` its mode and owner. */
function makeFile(path: string): void {
  writeFileSync(path, '', { flag: 'a', mode: ownMode })
  giveToOwner(resolveLinks(path))
}

/** Inspects a file without changing it. Throws StoreRefused. */
function inspect(path: string, create: boolean): void {
  if (!create || statSync(path).size > 0) openReadOnly(path, create).close()
}

/**
 * Sets pragmas and reads them back: if SQLite refuses one (file system without shared memory), only its value tells.
 */
function configure(db: DatabaseSync): void {
  const settings = {
    journal_mode: 'wal',
    // FULL: a commit returns once the write-ahead log is on stable storage (sqlite.org/pragma.html#pragma_synchronous).
    synchronous: 2,
    fullfsync: 1,
    wal_autocheckpoint: checkpointPages,
  }
  for (const [name, value] of Object.entries(settings)) {
    db.exec(`PRAGMA ${name} = ${value}`)
    const actual = pragma(db, name)
    if (actual !== value) throw new StoreRefused(`SQLite keeps ${name} at ${actual} instead of ${value}`)
  }
}

/** Takes the steps of the schema that are missing, seen under the lock: another process may have taken them. */
function makeTables(db: DatabaseSync, path: string): void {
  if (readVersion(db) === steps.length) return
  untilFree(() => db.exec('BEGIN IMMEDIATE'))
  checkStore(db, path, true)
  for (const { sqlite } of steps.slice(readVersion(db))) db.exec(sqlite)
  db.exec(`PRAGMA user_version = ${steps.length}; PRAGMA application_id = ${applicationId}`)
  const insert = db.prepare("INSERT INTO meta VALUES ('store', ?) ON CONFLICT DO NOTHING")
  insert.run(randomBytes(16).toString('base64url'))
  db.exec('COMMIT')
}

/** Removes the rights of other users on the files of an open database, if this user may do so. */
function makePrivate(path: string): void {
  for (const name of [path, `${path}-wal`, `${path}-shm`]) {
    const stats = statSync(name, { throwIfNoEntry: false })
    const isOwn = stats?.uid === process.geteuid?.()
    if (!stats || !isOwn || (stats.mode & othersBits) === 0) continue
    try {
      chmodSync(name, stats.mode & ~othersBits & 0o777)
    } catch (error) {
      // A file system without modes: whoever mounts it decides who may read.
      if (!/EPERM|ENOTSUP/.test(String((error as NodeJS.ErrnoException).code))) throw error
    }
  }
}
