// Makes durable what a database is found with, before anything of it is believed. SQLite recovers its log from the page
// cache, which a power cut does not keep, and a process that was killed may not have synced it.
import { fsyncSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { isBusy, isFull } from './errors.ts'
import { resolveLinks, syncFile } from './file-system.ts'

/** Time to wait for the lock of another program on the file. */
export const lockMs = 2000
const lockPollMs = 1

/** Syncs the log, writes it back as far as other readers allow, and syncs the database, which is open as `descriptor`. */
export function settle(db: DatabaseSync, path: string, descriptor: number): void {
  try {
    syncFile(`${resolveLinks(path)}-wal`)
  } catch (error) {
    // There is none, or the last other process has written it back and removed it just now.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch (error) {
    // The log itself is on the disk.
    if (!isFull(error)) throw error
  }
  fsyncSync(descriptor)
}

/**
 * Tries again while another process has the lock. SQLite itself would back off to 100 ms, miss the gaps of a process
 * that adds batch after batch, and give up at once where two wait for each other.
 */
export function untilFree(attempt: () => void, waitMs = lockMs): void {
  const endMs = performance.now() + waitMs
  for (;;) {
    try {
      attempt()
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() > endMs) throw error
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lockPollMs)
  }
}
