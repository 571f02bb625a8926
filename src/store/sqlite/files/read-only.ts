// Opens SQLite files for reading, and checks that they are ours.
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { sqliteLockMs } from '../../../limits.ts'
import { resolveLinks } from '../../../runtime/same-file.ts'
import { checkVersion } from '../../format/migrations.ts'
import { StoreRefused } from '../../store.ts'

/** 'plnt', which marks a file as ours (SQLite, pragma application_id). */
export const applicationId = 0x706c6e74
const headerBytes = 100
/** Offset of the read version in the header; 2: with a write-ahead log (sqlite.org/fileformat2.html). */
const readVersionAt = 19
const walVersion = 2

/** `checkSame`, for a file opened without locks: throws StoreRefused when it has been written to since. */
export type ReadOnlyFile = { db: DatabaseSync; checkSame?: () => void }

/** Opens an existing file. Throws StoreRefused. */
export function openReadOnly(path: string): ReadOnlyFile {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) throw new StoreRefused(`there is no file ${path}`)
  if (stats.isDirectory()) throw new StoreRefused(`${path} is a directory`)
  // SQLite treats a file shorter than its header as empty.
  if (stats.size < headerBytes) throw new StoreRefused(`${path} is not a plant store`)
  try {
    if (isOfStranger(path, stats.uid)) return openAtRest(path)
    return { db: new DatabaseSync(path, { readOnly: true, timeout: sqliteLockMs }) }
  } catch (error) {
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
  if (user === owner || user === 0 || !hasLog(path)) return false
  return !['-wal', '-shm'].every((ending) => existsSync(resolveLinks(path) + ending))
}

/** Opens a file without locks, if its `-wal` is empty or missing (sqlite.org/uri.html, "immutable"). */
function openAtRest(path: string): ReadOnlyFile {
  const target = resolveLinks(path)
  if (statSync(`${target}-wal`, { throwIfNoEntry: false })?.size) throw belongsToAnother(path)
  const url = pathToFileURL(target)
  url.searchParams.set('immutable', '1')
  const before = describeState(path)
  const checkSame = () => {
    if (describeState(path) === before) return
    throw new StoreRefused(`${path} was written to while it was read: run this again`)
  }
  return { db: new DatabaseSync(url, { readOnly: true }), checkSame }
}

export function belongsToAnother(path: string): StoreRefused {
  return new StoreRefused(`${path} belongs to another user: run this as that user`)
}

function describeState(path: string): string {
  const { ino, size, mtimeNs } = statSync(path, { bigint: true })
  return [ino, size, mtimeNs].join()
}

function hasLog(path: string): boolean {
  const header = Buffer.alloc(headerBytes)
  const descriptor = openSync(path, 'r')
  readSync(descriptor, header)
  closeSync(descriptor)
  return header[readVersionAt] === walVersion
}

export function refusal(path: string, error: Error): StoreRefused {
  if (error instanceof StoreRefused) return error
  return new StoreRefused(`cannot open ${path}: ${error.message}`, { cause: error })
}

/** True for a plant store. Throws StoreRefused when it is of a newer version. */
export function isStore(db: DatabaseSync): boolean {
  if (pragma(db, 'application_id') !== applicationId) return false
  checkVersion(readVersion(db))
  return true
}

/** Reads the number of the last migration. */
export function readVersion(db: DatabaseSync): number {
  return Number(pragma(db, 'user_version'))
}

export function pragma(db: DatabaseSync, name: string): unknown {
  const statement = db.prepare(`PRAGMA ${name}`)
  statement.setReturnArrays(true)
  return (statement.get() as unknown as [unknown] | undefined)?.[0]
}
