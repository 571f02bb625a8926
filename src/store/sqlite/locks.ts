// Locks of SQLite that other programs hold.
import { readFileSync, type Stats } from 'node:fs'
import { attempt } from '../../attempt.ts'
import { isBusy } from './errors.ts'

/** Time to wait for the lock of another program on the file. */
export const lockMs = 2000
const lockPollMs = 1
/** A request stops waiting for the lock this long before its deadline, so that its outcome is certain. */
export const marginMs = 100

/**
 * Tries again while another process has the lock. SQLite itself would back off to 100 ms, miss the short gaps between
 * the batches of another process, and give up at once if two wait for each other.
 */
export function untilFree<T>(attempt: () => T, waitMs = lockMs): T {
  const endMs = performance.now() + waitMs
  for (;;) {
    try {
      return attempt()
    } catch (error) {
      if (!isBusy(error)) throw error
      if (performance.now() > endMs) throw new Error('the database is locked by another program')
    }
    pause()
  }
}

/** True if a process has a lock on a file, as each connection has on its `-shm`; undefined where locks are not listed. */
export function isLocked({ ino }: Stats): boolean | undefined {
  return attempt(() => readFileSync('/proc/locks', 'utf8'))?.includes(`:${ino} `)
}

/** Blocks the thread for a moment. */
export function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lockPollMs)
}

/** Milliseconds of a clock that all threads share; `performance.now()` starts at 0 in each. */
export const sharedMs = () => Number(process.hrtime.bigint()) / 1e6
