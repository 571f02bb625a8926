// Opens SQLite files for reading, and checks that they are ours. Nothing is made that the owner of the file cannot use.
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { StoreRefused } from '../errors.ts'
import { applicationId, checkVersion, earlierApplicationId, refuseEarlier } from '../sql/schema.ts'
import { resolveLinks, syncFile } from './file-system.ts'
import { lockMs } from './settle.ts'

const headerBytes = 100

/** `checkSame`, for a file that is open without locks: throws StoreRefused if it has been written to since. */
export type ReadOnlyFile = { db: DatabaseSync; checkSame?: () => void }

/** Opens a plant store, or an empty database if `mayBeEmpty`. Throws StoreRefused. */
export function openReadOnly(path: string, mayBeEmpty = false): ReadOnlyFile {
  const stats = statSync(path)
  // SQLite treats a file shorter than its header as empty.
  if (stats.size < headerBytes) throw new StoreRefused(`${path} is not a plant store`)
  let file: ReadOnlyFile | undefined
  try {
    // SQLite itself would not report why it cannot open the file.
    accessSync(path, constants.R_OK)
    file = isOfStranger(path, stats.uid) ? openAtRest(path) : openWithLocks(path)
    checkStore(file.db, path, mayBeEmpty)
    return file
  } catch (error) {
    file?.db.close()
    throw refusal(path, error as Error)
  }
}

/**
 * True if this user's `-wal` and `-shm`, which SQLite also creates for readers, would lock the owner out. Files made by
 * root get the owner of the database.
 */
function isOfStranger(path: string, owner: number): boolean {
  const user = process.geteuid?.() ?? owner
  if (user === owner || user === 0) return false
  return !['-wal', '-shm'].every((ending) => existsSync(resolveLinks(path) + ending))
}

/** Opens a file beside its writers. A log that a killed process left is synced before it is believed. */
function openWithLocks(path: string): ReadOnlyFile {
  const db = new DatabaseSync(path, { readOnly: true, timeout: lockMs })
  const log = `${resolveLinks(path)}-wal`
  if (statSync(log, { throwIfNoEntry: false })?.size) syncFile(log)
  return { db }
}

/** Opens a file without locks, if no log beside it holds anything (sqlite.org/uri.html, "immutable"). */
function openAtRest(path: string): ReadOnlyFile {
  const target = resolveLinks(path)
  const sizeOf = (ending: string) => statSync(target + ending, { throwIfNoEntry: false })?.size
  if (sizeOf('-wal') || sizeOf('-journal')) throw belongsToAnother(path)
  const url = pathToFileURL(target)
  url.searchParams.set('immutable', '1')
  const changedNs = () => statSync(path, { bigint: true }).mtimeNs
  const before = changedNs()
  const checkSame = () => {
    if (changedNs() === before) return
    throw new StoreRefused(`${path} was written to while it was read: run this again`)
  }
  return { db: new DatabaseSync(url, { readOnly: true }), checkSame }
}

export function belongsToAnother(path: string): StoreRefused {
  return new StoreRefused(`${path} belongs to another user: run this as that user`)
}

export function refusal(path: string, error: Error): StoreRefused {
  if (error instanceof StoreRefused) return error
  return new StoreRefused(`cannot open ${path}: ${error.message}`, { cause: error })
}

/** Throws StoreRefused unless a database is a plant store of this schema, or empty if `mayBeEmpty`. */
export function checkStore(db: DatabaseSync, path: string, mayBeEmpty: boolean): void {
  // In this order: another process may make its tables between the two.
  const isEmpty = db.prepare('SELECT 1 FROM sqlite_schema').get() === undefined
  const application = pragma(db, 'application_id')
  if (application === earlierApplicationId) throw refuseEarlier(path)
  if (application === applicationId) checkVersion(path, readVersion(db))
  else if (!mayBeEmpty || !isEmpty) throw new StoreRefused(`${path} is not a plant store`)
}

/** Reads the number of the steps that made the schema. */
export function readVersion(db: DatabaseSync): number {
  return Number(pragma(db, 'user_version'))
}

export function pragma(db: DatabaseSync, name: string): unknown {
  return Object.values(db.prepare(`PRAGMA ${name}`).get() as object)[0]
}
