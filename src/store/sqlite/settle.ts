// Makes durable what a database is found with, before anything of it is believed. SQLite recovers its log from the page
// cache, which a power cut does not keep: a process that was killed may not have synced it, and pages whose fsync failed
// count as clean, so that no later fsync writes them (wiki.postgresql.org/wiki/Fsync_Errors).
import { closeSync, fsyncSync, openSync, readSync, statSync, writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { sqliteLockMs } from '../../../limits.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import { resolveLinks } from '../../../runtime/same-file.ts'
import { syncFile } from '../../../runtime/sync.ts'
import { codeOf, isBusy, isFull } from '../errors.ts'
import { findService } from './find-service.ts'
import { openStoreFile, type ReadOnlyFile, readVersion, refusal } from './read-only.ts'

const partBytes = 2 ** 20
/** Interval of attempts to take the lock while another process has it. */
export const lockPollMs = 1

/** Settles a database that is open for writing, and writes its log back as far as others that read it allow. */
export function settle(db: DatabaseSync, path: string): void {
  rewriteLog(db, path)
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    /* c8 ignore next 4: a disk that is full: test/store/disk.slow.ts */
  } catch (error) {
    // The log itself is on the disk.
    if (!isFull(error)) throw error
  }
}

/** Opens a plant store for reading, and settles it. Throws StoreRefused. */
export function openSettled(path: string): ReadOnlyFile {
  const file = openStoreFile(path)
  try {
    settleForReading(path)
    return file
    /* c8 ignore next 4: a disk that fails in the same moment */
  } catch (error) {
    file.db.close()
    throw refusal(path, error as Error)
  }
}

/** A service that runs has written the log again when it started; where that is not possible, it is synced at least. */
function settleForReading(path: string): void {
  const log = logOf(path)
  if (!statSync(log, { throwIfNoEntry: false })?.size) return
  if (findService(path).running !== true) {
    const db = new DatabaseSync(path)
    try {
      rewriteLog(db, path)
      /* c8 ignore next 4: another process has the lock, or the disk fails */
    } catch (error) {
      // Locked, or not for this user to write.
      if (codeOf(error) === 0 && (error as NodeJS.ErrnoException).syscall !== 'open') throw error
    } finally {
      db.close()
    }
  }
  syncFile(log)
}

/**
 * Writes the bytes of the log again, each to its place, and syncs them: nobody else writes there while this connection
 * has the write lock. An empty log gets a page instead, so that a checkpoint syncs the database.
 */
function rewriteLog(db: DatabaseSync, path: string): void {
  lockForWriting(db)
  if (writeAgain(logOf(path)) === 0) db.exec(`PRAGMA user_version = ${readVersion(db)}`)
  db.exec('COMMIT')
}

/** Begins a transaction with the write lock. */
export function lockForWriting(db: DatabaseSync): void {
  db.exec('PRAGMA busy_timeout = 0')
  untilFree(() => db.exec('BEGIN IMMEDIATE'))
}

/**
 * Tries again while another process has the lock. SQLite itself would back off to 100 ms, miss the gaps of a process
 * that adds batch after batch, and give up at once where two wait for each other.
 */
export function untilFree(attempt: () => void): void {
  const endMs = monotonicMs() + sqliteLockMs
  for (;;) {
    try {
      attempt()
      return
    } catch (error) {
      if (!isBusy(error) || monotonicMs() > endMs) throw error
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lockPollMs)
  }
}

/** Returns the number of bytes. SQLite keeps no locks in this file, so that it may be closed. */
function writeAgain(log: string): number {
  const file = openSync(log, 'r+')
  try {
    const part = Buffer.allocUnsafe(partBytes)
    let at = 0
    for (;;) {
      const bytes = readSync(file, part, 0, partBytes, at)
      if (bytes === 0) break
      at += writeSync(file, part, 0, bytes, at)
    }
    fsyncSync(file)
    return at
  } finally {
    closeSync(file)
  }
}

function logOf(path: string): string {
  return `${resolveLinks(path)}-wal`
}
