// Opens the SQLite file for writing, in the writer thread: inspects it before changing anything, makes its contents
// durable, and creates missing tables.
import { randomBytes } from 'node:crypto'
import { fsyncSync, openSync, statSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { giveToOwner, isSameFile, resolveLinks, syncDirectoryOf, syncWal } from '../../file-system.ts'
import { StoreRefused } from '../errors.ts'
import { steps, version } from '../sql/schema.ts'
import { isFull } from './errors.ts'
import { type OpenFiles, recordFiles } from './files.ts'
import { untilFree } from './locks.ts'
import { refuseForeignWal, refuseOtherName, refuseStrayWal } from './own-wal.ts'
import { openReadOnly, pragma, refusal, refuseForeign } from './read-only.ts'

/** Only its owner may read a new database, regardless of the umask, because it contains the hashes of tokens. */
const ownMode = 0o600

/** `create`: create a missing file. */
export type WriterOptions = { path: string; create: boolean }
/**
 * `descriptor`: of the database, for syncs; `wal`: of the write-ahead log. Neither is ever closed; see `syncFile`.
 */
type OpenFileDescriptors = { files: OpenFiles; descriptor: number; wal: number }
export type OpenDatabase = ReturnType<typeof openDatabase>

/**
 * Opens the file. `former`: the files that were open before, if it is reopened. Throws StoreRefused. `isSound`: false
 * if the disk was full, or after an error that leaves the state unknown: the next change must reopen the file.
 */
export function openDatabase({ path, create }: WriterOptions, former?: OpenFileDescriptors) {
  const db = new DatabaseSync(path, { open: false })
  try {
    refuseStrayWal(path)
    // Checked before the database, because another process may be creating the files.
    const names = ['-wal', '-shm', '-journal'].map((ending) => resolveLinks(path) + ending)
    const left = names.find((name) => statSync(name, { throwIfNoEntry: false })?.size)
    const before = statSync(path, { throwIfNoEntry: false })
    if (!former) refuseOtherName(path)
    // SQLite would delete the log, or share the index with a process that still uses the missing database. An empty
    // database with a journal is not missing: another program is creating it.
    if (left && (left.endsWith('-journal') ? !before : !before?.size))
      throw new StoreRefused(
        `${left} belongs to a missing database: move the database back beside it, or stop all processes that use it and move this file away`,
      )
    if (!before) {
      // SQLite gives `-wal` and `-shm` the same mode and owner.
      writeFileSync(path, '', { flag: 'a', mode: ownMode })
      giveToOwner(resolveLinks(path))
    }
    // Inspects an existing file before changing anything.
    else if (!create || before.size > 0) openReadOnly(path, { create }).close()
    const descriptor = former?.descriptor ?? openSync(path, 'r+')
    refuseForeignWal(path, descriptor)
    db.open()
    untilFree(() => configure(db))
    // A killed process may not have synced its log. SQLite recovers it from the page cache, which a power cut would
    // lose. Therefore the log is synced, then checkpointed as far as other readers allow, and the database is synced.
    syncWal(path)
    const isSound = checkpoint(db, 'TRUNCATE')
    if (isSound) fsyncSync(descriptor)
    makeTables(db, path)
    syncDirectoryOf(resolveLinks(path))
    const files = former?.files ?? recordFiles(path)
    const wal = former?.wal ?? openSync(`${resolveLinks(path)}-wal`, 'r')
    files.check()
    if (before && !isSameFile(before, files.ids[0]))
      throw new StoreRefused(`${path} was replaced while it was being opened`)
    return { db, files, descriptor, wal, isSound }
  } catch (error) {
    if (db.isOpen) db.close()
    throw refusal(path, error as Error)
  }
}

/** Sets pragmas. Throws StoreRefused if WAL mode is unavailable, which only the result of the pragma shows. */
function configure(db: DatabaseSync): void {
  // Lists are read as bytes.
  if (pragma(db, 'encoding') !== 'UTF-8')
    throw new StoreRefused('the text encoding of the database must be UTF-8')
  // A kill must not leave a journal on disk, which only a writer could roll back. Only the first page is written.
  if (pragma(db, 'journal_mode') !== 'wal') db.exec('PRAGMA journal_mode = MEMORY')
  const mode = pragma(db, 'journal_mode = wal')
  if (mode !== 'wal')
    throw new StoreRefused(`journal_mode remains ${mode}, not wal: the file system may lack shared memory`)
  // FULL: a commit returns once the write-ahead log is on stable storage (sqlite.org/pragma.html#pragma_synchronous).
  db.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON')
  // The writer checkpoints itself, because SQLite ignores errors of automatic checkpoints.
  db.exec('PRAGMA wal_autocheckpoint = 0')
}

/** Runs the missing steps of the schema. Checks the version again under the lock: another process may have run them. */
function makeTables(db: DatabaseSync, path: string): void {
  if (untilFree(() => pragma(db, 'user_version')) === version) return
  untilFree(() => db.exec('BEGIN IMMEDIATE'))
  refuseForeign(db, path, true)
  for (const { sqlite } of steps.slice(Number(pragma(db, 'user_version')))) db.exec(sqlite)
  const id = randomBytes(16).toString('base64url')
  db.exec(`INSERT INTO meta (key, value) VALUES ('store', '${id}') ON CONFLICT DO NOTHING`)
  db.exec(`PRAGMA user_version = ${version}; COMMIT`)
}

/** Checkpoints the log. Returns false if the disk is full; plants can still be listed. */
export function checkpoint(db: DatabaseSync, mode: 'PASSIVE' | 'TRUNCATE'): boolean {
  try {
    db.exec(`PRAGMA wal_checkpoint(${mode})`)
    return true
  } catch (error) {
    if (isFull(error)) return false
    throw error
  }
}
