// Opens SQLite files for reading, and checks that they are plant stores. Creates no file that the owner cannot use.
import { accessSync, constants, existsSync, openSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { resolveLinks, syncWal } from '../../file-system.ts'
import { StoreRefused } from '../errors.ts'
import { applicationId, checkVersion, earlierApplicationIds, refusalOfEarlier } from '../sql/schema.ts'
import { isBusy, isFull, needsRollback } from './errors.ts'
import { lockedByOther, lockMs } from './locks.ts'
import { refuseForeignWal, refuseOtherName, refuseStrayWal } from './own-wal.ts'

const headerBytes = 100

/**
 * Opens a plant store. Other processes may write to it. Syncs the write-ahead log, which a killed process may have left
 * unsynced. `writer`: the caller will open it to write, and has already checked the name; with `create`, it may be an
 * empty database. Throws StoreRefused.
 */
export function openReadOnly(path: string, writer?: { create: boolean }): DatabaseSync {
  refuseStrayWal(path)
  const { size, uid } = statSync(path)
  // The file is too short for the header of a database; an empty file counts as missing.
  if (size < headerBytes) throw notOurs(path, size === 0)
  const db = new DatabaseSync(path, { readOnly: true, timeout: lockMs, open: false })
  try {
    // SQLite would not report why it cannot open the file.
    accessSync(path, constants.R_OK)
    refuseOtherUser(path, uid)
    // The descriptor stays open: closing it would release the locks of other connections in this process.
    if (!writer) refuseForeignWal(path, openSync(path, 'r'))
    db.open()
    // After an error of a disk, Linux makes its file system read-only: the log can still be read.
    syncWal(path, ['ENOENT', 'EROFS'])
    refuseForeign(db, path, writer?.create)
    const wal = statSync(`${resolveLinks(path)}-wal`, { throwIfNoEntry: false })
    // A backup has no log: it is not in WAL mode.
    if (!writer && !wal?.size && pragma(db, 'journal_mode') === 'wal') refuseOtherName(path)
    return db
  } catch (error) {
    if (db.isOpen) db.close()
    throw refusal(path, error as Error)
  }
}

/**
 * Throws StoreRefused if `-wal` and `-shm`, which SQLite also creates for readers, would belong to another user than
 * the database. SQLite gives files created by root the owner of the database.
 */
function refuseOtherUser(path: string, owner: number): void {
  const user = process.geteuid?.() ?? owner
  if (user === owner || user === 0) return
  if (!['-wal', '-shm'].every((ending) => existsSync(resolveLinks(path) + ending)))
    throw new StoreRefused(`${path} belongs to another user; run this command as that user`)
}

/** Returns the refusal for an error of SQLite while a database is opened. */
export function refusal(path: string, error: Error): StoreRefused {
  if (error instanceof StoreRefused) return error
  const known = isFull(error) ? 'database or disk is full' : isBusy(error) && lockedByOther
  const todo = needsRollback(error) ? `: it has a -journal; run: sqlite3 '${path}' .tables` : ''
  return new StoreRefused(`cannot open ${path}: ${known || error.message}${todo}`, { cause: error })
}

/** Throws StoreRefused unless a database is a plant store of this schema, or empty if `mayBeEmpty`. */
export function refuseForeign(db: DatabaseSync, path: string, mayBeEmpty = false): void {
  // In this order, because another process may create its tables between the two queries.
  const isEmpty = db.prepare('SELECT 1 FROM sqlite_schema').get() === undefined
  const application = pragma(db, 'application_id')
  if (earlierApplicationIds.includes(application)) throw refusalOfEarlier(path)
  if (application === applicationId) checkVersion(path, Number(pragma(db, 'user_version')))
  else if (!mayBeEmpty || !isEmpty) throw notOurs(path, isEmpty)
}

/** An empty database counts as missing: a process that is killed during creation leaves one. */
const notOurs = (path: string, isEmpty: boolean) =>
  new StoreRefused(`${path} is not a plant store`, { isMissing: isEmpty })

/** Reads a PRAGMA that returns one value. */
export const pragma = (db: DatabaseSync, name: string): unknown =>
  Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0]
