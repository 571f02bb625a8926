// One transaction per request, or for the batches that wait at one moment, in the writer thread. What was committed is
// acknowledged only when nothing about it is odd: no error, and the path still names the files that were written.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { monotonicMs } from '../../clock.ts'
import { sqliteMarginMs } from '../../limits.ts'
import type { Lost } from '../store.ts'
import { BatchInsert } from './batch.ts'
import type { OpenDatabase } from './database.ts'
import { codeOf, isBroken, isBusy } from './errors.ts'
import { type FileFault, OpenFiles } from './files.ts'
import type { IndexLock } from './index-lock.ts'
import type { Batch, Done, Failure, Request } from './messages.ts'
import type { WalIndex } from './wal-index.ts'

/** How often the lock is looked for while another process has it. */
const lockPollMs = 1
/** Files that held the batch before so short a time ago are looked at after the next one only. */
const recentMs = 5

/** What a request came to instead of its end. */
class Failed extends Error {
  readonly failure: Failure

  constructor(failure: Failure) {
    super(failure.failed)
    this.failure = failure
  }
}

export class Transactions {
  readonly #db: DatabaseSync
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  readonly #batch: BatchInsert
  readonly #index: WalIndex
  readonly #lock: IndexLock
  readonly #files: OpenFiles
  readonly #sleeper = new Int32Array(new SharedArrayBuffer(4))
  #checkedMs = Number.NEGATIVE_INFINITY

  constructor(
    path: string,
    { db, ids }: OpenDatabase,
    { index, lock }: { index: WalIndex; lock: IndexLock },
  ) {
    this.#db = db
    db.exec('PRAGMA busy_timeout = 0')
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#batch = new BatchInsert(db)
    this.#index = index
    this.#lock = lock
    this.#files = new OpenFiles(path, ids, index)
  }

  /** Does one request, or several batches, wholly or not at all. */
  do(requests: Request[]): { done: Done[] } | Failure {
    this.#lock.begin()
    const result = this.#attempt(requests)
    this.#lock.end()
    return result
  }

  #attempt(requests: Request[]): { done: Done[] } | Failure {
    try {
      if (monotonicMs() - this.#checkedMs > recentMs) this.#check('nothing-added')
      else this.#index.restore()
      const done = this.#prepare(requests)
      this.#end(requests)
      return { done }
    } catch (error) {
      if (error instanceof Failed) return error.failure
      return this.#rollBack(error)
    }
  }

  /** Everything before the COMMIT: whatever fails here can be rolled back. */
  #prepare(requests: Request[]): Done[] {
    const deadlineMs = Math.min(...requests.map((request) => request.deadlineMs))
    const leftMs = Math.floor(deadlineMs - monotonicMs()) - sqliteMarginMs
    if (leftMs < 0) throw new Error('the database was busy until it was too late for this batch')
    this.#takeLock(leftMs)
    const done = this.#run(requests)
    this.#checkIndex()
    return done
  }

  /**
   * SQLite would look for the lock every 100 ms in the end: beside a process that adds batch after batch it would not
   * find the moments in between.
   */
  #takeLock(leftMs: number): void {
    const untilMs = monotonicMs() + leftMs
    for (;;) {
      try {
        this.#begin.run()
        return
      } catch (error) {
        if (!isBusy(error) || monotonicMs() >= untilMs) throw error
        Atomics.wait(this.#sleeper, 0, 0, lockPollMs)
      }
    }
  }

  #run(requests: Request[]): Done[] {
    const [first] = requests as [Request]
    if ('append' in first) return this.#batch.run(requests as Batch[])
    if ('probe' in first) return [0]
    return [Number(this.#db.prepare(first.text).run(first.values).changes)]
  }

  /** A COMMIT over an index that has lost its content would hide all frames before its own. */
  #checkIndex(): void {
    /* c8 ignore next 3: another process writes into the -shm in the middle of a transaction */
    if (!this.#index.read().lost) return
    this.#index.restore()
    throw new Error('the -shm file was overwritten')
  }

  #end([first]: Request[]): void {
    if (first && 'probe' in first) {
      this.#db.exec('ROLLBACK')
      return
    }
    try {
      this.#commit.run()
      /* c8 ignore next 5: COMMIT itself fails: test/faults */
    } catch (error) {
      // BUSY leaves the transaction open. After anything else the disk may hold what it would not confirm.
      if (isBusy(error)) throw error
      throw new Failed({ ...this.#rollBack(error), outcome: 'unknown' })
    }
    this.#batch.committed()
    this.#check('unknown')
  }

  #check(outcome: Lost): void {
    const found = this.#files.findFault()
    if (found === undefined) {
      this.#checkedMs = monotonicMs()
      return
    }
    this.#save(found)
    throw new Failed({ outcome, failed: found.fault, code: 0, lost: true })
  }

  /** Before the end: saves what can be saved. */
  end(): void {
    this.#lock.begin()
    const found = this.#files.findFault()
    if (found) this.#save(found)
    this.#lock.end()
  }

  /**
   * When files were moved, empties the write-ahead log into the one that is open: it is complete then, and the `-wal`
   * at the path is not taken for that of the next file there.
   */
  #save({ salvage }: FileFault): void {
    try {
      if (!salvage) return
      this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      /* c8 ignore next 3: the disk fails when there is nothing left to lose */
    } catch {
      // What is lost already cannot be lost again: the fault itself is what the operator hears of.
    }
  }

  #rollBack(error: unknown): Failure {
    let broken = isBroken(error)
    try {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      /* c8 ignore next 3: a ROLLBACK fails: test/faults */
    } catch {
      broken = true
    }
    return { outcome: 'nothing-added', failed: (error as Error).message, code: codeOf(error), broken }
  }
}
