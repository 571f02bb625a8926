// Opens the SQLite file for writing, in the writer thread: inspects it before changing anything, makes its contents
// durable, and makes the tables that are missing.
import { randomBytes } from 'node:crypto'
import { fsyncSync, openSync, statSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { giveToOwner, isSameFile, resolveLinks, syncDirectoryOf, syncLog } from '../../file-system.ts'
import { StoreRefused } from '../errors.ts'
import { steps, version } from '../sql/schema.ts'
import { isFull } from './errors.ts'
import { noteFiles, type OpenFiles } from './files.ts'
import { untilFree } from './locks.ts'
import { checkStore, openReadOnly, pragma, refusal, refuseStrayLog } from './read-only.ts'

/** Only the user of a new database may read it, whatever the umask, as it holds the hashes of tokens. */
const ownMode = 0o600

/** `create`: a missing file is made. */
export type WriterOptions = { path: string; create: boolean }
/**
 * `descriptor`: of the database, for syncs. It is never closed, see `syncFile`; nor is `log`, that of the write-ahead
 * log.
 */
type Kept = { files: OpenFiles; descriptor: number; log: number }
export type OpenDatabase = ReturnType<typeof openDatabase>

/**
 * Opens the file. `former`: the database that it must be, if it is opened again. Throws StoreRefused. `isSound` becomes
 * false if the disk is full, or an error leaves the state unknown: the file must then be opened again before it is changed.
 */
export function openDatabase({ path, create }: WriterOptions, former?: Kept) {
  const db = new DatabaseSync(path, { open: false })
  try {
    refuseStrayLog(path)
    // Looked at first, because another process may be making the files.
    const names = ['-wal', '-shm'].map((ending) => resolveLinks(path) + ending)
    const left = names.find((name) => statSync(name, { throwIfNoEntry: false })?.size)
    const before = statSync(path, { throwIfNoEntry: false })
    // SQLite would remove the log, or share the index with a process that still uses the missing database.
    if (left && !before?.size)
      throw new StoreRefused(
        `${left} belongs to a missing database: put it back, or stop all processes that use it, and move the file away`,
      )
    if (!before) makeFile(path)
    // Looks at what is there before changing anything.
    else if (!create || before.size > 0) openReadOnly(path, create).close()
    db.open()
    const descriptor = former?.descriptor ?? openSync(path, 'r+')
    untilFree(() => configure(db))
    // A killed process may not have synced its log. SQLite recovers it from the page cache, which a power cut does not
    // keep. So the log is synced, checkpointed as far as other readers allow, and the database synced.
    syncLog(path)
    const isSound = checkpoint(db, 'TRUNCATE')
    if (isSound) fsyncSync(descriptor)
    makeTables(db, path)
    syncDirectoryOf(resolveLinks(path))
    const files = former?.files ?? noteFiles(path)
    const log = former?.log ?? openSync(`${resolveLinks(path)}-wal`, 'r')
    files.check()
    if (before && !isSameFile(before, files.ids[0]))
      throw new StoreRefused(`${path} was replaced while it was being opened`)
    return { db, files, descriptor, log, isSound }
  } catch (error) {
    if (db.isOpen) db.close()
    throw refusal(path, error as Error)
  }
}

/** Makes an empty file. SQLite gives `-wal` and `-shm` its mode and owner. */
function makeFile(path: string): void {
  writeFileSync(path, '', { flag: 'a', mode: ownMode })
  giveToOwner(resolveLinks(path))
}

/** Sets pragmas. Throws StoreRefused if the file system lacks shared memory, which only the pragma's result shows. */
function configure(db: DatabaseSync): void {
  // A kill must not leave a journal, which only a writer could roll back. The first page, with its mode, is written at once.
  if (pragma(db, 'journal_mode') !== 'wal') db.exec('PRAGMA journal_mode = MEMORY')
  const mode = pragma(db, 'journal_mode = wal')
  if (mode !== 'wal')
    throw new StoreRefused(`journal_mode stays ${mode}, not wal: the file system may lack shared memory`)
  // FULL: a commit returns once the write-ahead log is on stable storage (sqlite.org/pragma.html#pragma_synchronous).
  db.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON')
  // SQLite would disregard errors of an automatic checkpoint: the writer checkpoints itself.
  db.exec('PRAGMA wal_autocheckpoint = 0')
}

/** Runs the missing steps of the schema. Looks for them under the lock, as another process may have run them. */
function makeTables(db: DatabaseSync, path: string): void {
  if (untilFree(() => pragma(db, 'user_version')) === version) return
  untilFree(() => db.exec('BEGIN IMMEDIATE'))
  checkStore(db, path, true)
  for (const { sqlite } of steps.slice(Number(pragma(db, 'user_version')))) db.exec(sqlite)
  const id = randomBytes(16).toString('base64url')
  db.exec(`INSERT INTO meta VALUES ('store', '${id}') ON CONFLICT DO NOTHING`)
  db.exec(`PRAGMA user_version = ${version}; COMMIT`)
}

/** Writes the log back into the database. Returns false on a full disk, where plants can still be listed. */
export function checkpoint(db: DatabaseSync, mode: 'PASSIVE' | 'TRUNCATE'): boolean {
  try {
    db.exec(`PRAGMA wal_checkpoint(${mode})`)
    return true
  } catch (error) {
    if (isFull(error)) return false
    throw error
  }
}
