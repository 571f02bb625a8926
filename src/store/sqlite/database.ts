// Opens the SQLite file for writing, in the writer thread: inspects it before changing anything, then migrates its
// schema.
import { randomBytes } from 'node:crypto'
import { chmodSync, statSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { sqliteLockMs } from '../../limits.ts'
import { giveToOwner } from '../../runtime/new-file.ts'
import { identify, isSameFile, resolveLinks } from '../../runtime/same-file.ts'
import { syncDirectoryOf } from '../../runtime/sync.ts'
import { StoreRefused } from '../errors.ts'
import { checkUpgrade, migrations, refuseInUse } from '../format/migrations.ts'
import { isBusy } from './errors.ts'
import { noteFiles, type OpenFiles } from './files/files.ts'
import {
  applicationId,
  belongsToAnother,
  checkStore,
  openStoreFile,
  pragma,
  readVersion,
  refusal,
} from './files/read-only.ts'
import { lockForWriting, settle, untilFree } from './files/settle.ts'

/** The write-ahead log is checkpointed at this many pages of 4 KiB. */
const checkpointPages = 4000
/** Only the user of a database may read it, whatever the umask, as it holds the hashes of tokens. */
const ownMode = 0o600
const othersBits = 0o077

export type OpenOptions = { path: string; mustExist: boolean; keepsSchema: boolean }
export type OpenDatabase = { db: DatabaseSync; files: OpenFiles }

/** Opens the file. `reopened`: the files that it must be, after an I/O error. Throws StoreRefused. */
export function openDatabase(options: OpenOptions, reopened?: OpenFiles): OpenDatabase {
  const { path, mustExist } = options
  let db: DatabaseSync | undefined
  try {
    const before = identify(path)
    if (before || mustExist) bringUpToDate(options)
    else makeFile(path)
    const opened = new DatabaseSync(path, { timeout: sqliteLockMs })
    db = opened
    untilFree(() => configure(opened))
    if (before) settle(db, path)
    migrate(db, path)
    makePrivate(resolveLinks(path))
    syncDirectoryOf(resolveLinks(path))
    const files = reopened ?? noteFiles(path)
    files.check()
    /* c8 ignore next 2: the path is given to another file in the same moment */
    if (before && !isSameFile(before, files.ids[0]))
      throw new StoreRefused(`${path} was replaced while it was opened`)
    return { db, files }
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

/** Inspects a file without changing it. Returns its schema's version; 0 if it has none yet. Throws StoreRefused. */
function inspect({ path, mustExist }: OpenOptions): number {
  if (!mustExist && statSync(path).size === 0) return 0
  const { db, checkSame } = openStoreFile(path, !mustExist)
  try {
    /* c8 ignore next: it takes another user, in a process of its own */
    if (checkSame) throw belongsToAnother(path)
    return readVersion(db)
  } finally {
    db.close()
  }
}

/**
 * Sets pragmas and reads them back: when SQLite refuses one (file system without shared memory), only its value tells.
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
    /* c8 ignore next: no SQLite that we know does so */
    if (actual !== value) throw new StoreRefused(`SQLite keeps ${name} at ${actual} instead of ${value}`)
  }
}

/** Migrates a file of an older version, unless another process is faster. */
function bringUpToDate(options: OpenOptions): void {
  try {
    untilFree(() => {
      const version = inspect(options)
      if (version === 0 || version === migrations.length) return
      checkUpgrade(version, options.keepsSchema)
      migrateAlone(options.path)
    })
  } catch (error) {
    if (!isBusy(error)) throw error
    refuseInUse('another process has it open')
  }
}

/**
 * Migrates under an exclusive lock, which SQLite grants only when no other connection is open, as a service would have.
 * Others get in only with the new schema, which an older service refuses.
 */
function migrateAlone(path: string): void {
  const db = new DatabaseSync(path)
  try {
    db.exec('PRAGMA locking_mode = EXCLUSIVE')
    configure(db)
    settle(db, path)
    migrate(db, path)
  } finally {
    db.close()
  }
}

/** Migrates from the version seen under the lock: another process may have migrated since the inspection. */
function migrate(db: DatabaseSync, path: string): void {
  if (readVersion(db) === migrations.length) return
  lockForWriting(db)
  checkStore(db, path, true)
  for (const { sqlite } of migrations.slice(readVersion(db))) db.exec(sqlite)
  db.exec(`PRAGMA user_version = ${migrations.length}; PRAGMA application_id = ${applicationId}`)
  db.prepare("INSERT INTO meta VALUES ('store', ?) ON CONFLICT DO NOTHING").run(
    randomBytes(16).toString('base64url'),
  )
  db.exec('COMMIT')
}

/** Removes the rights of other users on the files of an open database, where this user may do so. */
function makePrivate(path: string): void {
  for (const name of [path, `${path}-wal`, `${path}-shm`]) {
    const stats = statSync(name, { throwIfNoEntry: false })
    const isOwn = stats?.uid === process.geteuid?.()
    if (stats && isOwn && (stats.mode & othersBits) !== 0) changeMode(name, stats.mode & ~othersBits & 0o777)
  }
}

function changeMode(path: string, mode: number): void {
  try {
    chmodSync(path, mode)
    /* c8 ignore next 4: a file system without modes, whose owner decides at the mount who may read */
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EPERM' && code !== 'ENOTSUP') throw error
  }
}
