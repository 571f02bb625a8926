// Opens SQLite files for reading, and checks that they are ours.
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { sqliteLockMs } from '../../../limits.ts'
import { resolveLinks } from '../../../runtime/same-file.ts'
import { StoreRefused } from '../../errors.ts'
import { checkVersion } from '../../format/migrations.ts'

/** 'plnt', which marks a file as ours (SQLite, pragma application_id). */
export const applicationId = 0x706c6e74
const headerBytes = 100

/** `checkSame`, for a file opened without locks: throws StoreRefused when it has been written to since. */
export type ReadOnlyFile = { db: DatabaseSync; checkSame?: () => void }

/** Opens a plant store, or an empty database when that will do. Throws StoreRefused. */
export function openStoreFile(path: string, mayBeEmpty = false): ReadOnlyFile {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) throw new StoreRefused(`there is no file ${path}`)
  if (stats.isDirectory()) throw new StoreRefused(`${path} is a directory`)
  // SQLite treats a file shorter than its header as empty.
  if (stats.size < headerBytes) throw new StoreRefused(`${path} is not a plant store`)
  let file: ReadOnlyFile | undefined
  try {
    // SQLite itself would not say why it cannot open the file.
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
 * True when this user's `-wal` and `-shm`, which SQLite creates for readers, too, would lock the owner out. Files made
 * by root get the owner of the database.
 */
function isOfStranger(path: string, owner: number): boolean {
  /* c8 ignore next: coverage is counted on Linux; Windows has no such users */
  const user = process.geteuid?.() ?? owner
  if (user === owner || user === 0) return false
  return !['-wal', '-shm'].every((ending) => existsSync(resolveLinks(path) + ending))
}

function openWithLocks(path: string): ReadOnlyFile {
  return { db: new DatabaseSync(path, { readOnly: true, timeout: sqliteLockMs }) }
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

/** Throws StoreRefused when a database is neither a plant store nor, if that will do, empty, or of a newer version. */
export function checkStore(db: DatabaseSync, path: string, mayBeEmpty: boolean): void {
  // In this order: another process may make its tables between the two.
  const isEmpty = db.prepare('SELECT 1 FROM sqlite_schema').get() === undefined
  if (pragma(db, 'application_id') === applicationId) checkVersion(readVersion(db))
  else if (!mayBeEmpty || !isEmpty) throw new StoreRefused(`${path} is not a plant store`)
}

/** Reads the number of the last migration. */
export function readVersion(db: DatabaseSync): number {
  return Number(pragma(db, 'user_version'))
}

export function pragma(db: DatabaseSync, name: string): unknown {
  return Object.values(db.prepare(`PRAGMA ${name}`).get() as object)[0]
}
