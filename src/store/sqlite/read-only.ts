// Opens SQLite files for reading, and checks that they are plant stores. Creates no file that the owner cannot use.
import { accessSync, constants, existsSync, lstatSync, readFileSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { attempt } from '../../attempt.ts'
import { isSameFile, resolveLinks, syncWal } from '../../file-system.ts'
import { StoreRefused } from '../errors.ts'
import { applicationId, checkVersion, earlierApplicationIds, refusalOfEarlier } from '../sql/schema.ts'
import { isFull } from './errors.ts'
import { lockMs } from './locks.ts'

const headerBytes = 100

/**
 * Opens a plant store, or an empty database if `mayBeEmpty`. Other processes may write to it. Syncs the write-ahead
 * log, which a killed process may have left unsynced. A writer passes `mayBeEmpty`, and has already checked the
 * name. Throws StoreRefused.
 */
export function openReadOnly(path: string, mayBeEmpty?: boolean): DatabaseSync {
  refuseStrayWal(path)
  const { size, uid } = statSync(path)
  // The file is too short for the header of a database; an empty file counts as missing.
  if (size < headerBytes) throw notOurs(path, size === 0)
  const db = new DatabaseSync(path, { readOnly: true, timeout: lockMs, open: false })
  try {
    // SQLite would not report why it cannot open the file.
    accessSync(path, constants.R_OK)
    refuseOtherUser(path, uid)
    db.open()
    // After an error of a disk, Linux makes its file system read-only: the log can still be read.
    syncWal(path, /^(ENOENT|EROFS)$/)
    refuseForeign(db, path, mayBeEmpty)
    const wal = statSync(`${resolveLinks(path)}-wal`, { throwIfNoEntry: false })
    // A backup has no log: it is not in WAL mode.
    if (mayBeEmpty === undefined && !wal?.size && pragma(db, 'journal_mode') === 'wal') refuseOtherName(path)
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

/** Throws StoreRefused if a log is next to a link, where SQLite ignores it: the database was probably moved. */
export function refuseStrayWal(path: string): void {
  const wal = statSync(`${path}-wal`, { throwIfNoEntry: false })
  if (!wal?.size || !lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return
  if (isSameFile(wal, statSync(`${resolveLinks(path)}-wal`, { throwIfNoEntry: false }))) return
  throw new StoreRefused(
    `SQLite would ignore ${path}-wal, because ${path} is a symbolic link: if the database was moved without its log, move it back, stop the service, then move both; otherwise move the log away`,
  )
}

/**
 * Throws StoreRefused if the log may be under another name: each hard link has a separate log, and a bind-mounted file
 * leaves its log in the original directory.
 */
export function refuseOtherName(path: string): void {
  if (Number(statSync(path, { throwIfNoEntry: false })?.nlink) > 1)
    throw new StoreRefused(`${path} has hard links: stop all processes, and keep only one, with its -wal`)
  // The fifth field is the mount point, with \040 for a space (proc_pid_mountinfo(5)).
  const name = resolveLinks(path).replaceAll(' ', '\\040')
  const mounts = attempt(() => readFileSync('/proc/self/mountinfo', 'utf8').split('\n'))
  if (mounts?.some((line) => line.split(' ')[4] === name))
    throw new StoreRefused(`${path} is mounted without its log: mount its directory instead`)
}

/** Returns the refusal for an error of SQLite while a database is opened. */
export function refusal(path: string, error: Error): StoreRefused {
  if (error instanceof StoreRefused) return error
  const reason = isFull(error) ? 'database or disk is full' : error.message
  return new StoreRefused(`cannot open ${path}: ${reason}`, { cause: error })
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
