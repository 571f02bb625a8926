// Waits for SQLite locks held by other programs.
import { isBusy } from './errors.ts'

/** Time to wait for a lock held by another program. */
export const lockMs = 2000
export const lockedByOther = 'the database is locked by another program'
const lockPollMs = 1
/** A request stops waiting for the lock this long before its deadline, so that its outcome is certain. */
export const marginMs = 100

/**
 * Retries while another process has the lock. The busy handler of SQLite backs off to 100 ms, misses the short gaps
 * between the batches of another process, and gives up at once if two processes wait for each other.
 */
export function untilFree<T>(attempt: () => T, waitMs = lockMs): T {
  const endMs = performance.now() + waitMs
  for (;;) {
    try {
      return attempt()
    } catch (error) {
      if (!isBusy(error)) throw error
      if (performance.now() > endMs) throw new Error(lockedByOther)
    }
    pause()
  }
}

/** Blocks the thread for a moment. */
export const pause = () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lockPollMs)

/** Milliseconds of a clock shared by all threads; `performance.now()` starts at 0 in each thread. */
export const sharedMs = () => Number(process.hrtime.bigint()) / 1e6
