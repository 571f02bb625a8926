// Runs transactions in the writer thread, one per request, or one for all batches that wait at one moment. A commit is
// acknowledged only if there was no error and the path still names the written files.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { sqliteMarginMs } from '../../../limits.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import type { FailedOutcome } from '../../store.ts'
import { codeOf, isBroken, isBusy, isFull } from '../errors.ts'
import type { OpenFiles } from '../files/files.ts'
import { BatchInsert } from './batch.ts'
import type { Batch, Done, Failure, Request, Result, Transaction } from './writer-messages.ts'

/** Interval of attempts to take the lock while another process has it. */
const lockPollMs = 1

const late: Failure = {
  outcome: 'nothing-added',
  failed: 'the database was locked until it was too late',
  code: 0,
}

class FilesLost extends Error {}

export class Transactions {
  readonly #db: DatabaseSync
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  readonly #batch: BatchInsert
  readonly #files: OpenFiles
  readonly #sleeper = new Int32Array(new SharedArrayBuffer(4))

  constructor(db: DatabaseSync, files: OpenFiles) {
    this.#db = db
    db.exec('PRAGMA busy_timeout = 0')
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#batch = new BatchInsert(db)
    this.#files = files
  }

  /**
   * Runs one request, or several batches, atomically and at most once; requests that are late are left out before it
   * begins. Returns one result per request.
   */
  do(requests: Request<Transaction>[]): Result[] {
    let inTime = requests
    /** Outcome of a failure: unknown from COMMIT on. */
    let outcome: FailedOutcome = 'nothing-added'
    try {
      inTime = this.#beginInTime(requests)
      if (inTime.length === 0) return requests.map(() => late)
      this.#checkFiles()
      const done = this.#run(inTime)
      if ('probe' in (inTime[0] as Request<Transaction>)) this.#db.exec('ROLLBACK')
      else {
        outcome = 'unknown'
        this.#commit.run()
        this.#batch.committed()
      }
      this.#checkFiles()
      return requests.map((request) => {
        const index = inTime.indexOf(request)
        /* c8 ignore next: one batch is late in the moment in which the lock is free for another */
        return index < 0 ? late : { done: done[index] as Done }
      })
    } catch (error) {
      const failure = this.#rollBack(error, outcome)
      /* c8 ignore next: one batch fails in the moment in which another one is late */
      return requests.map((request) => (inTime.includes(request) ? failure : late))
    }
  }

  /**
   * Begins a transaction, and returns the requests that are in time then; if none is, nothing was begun. SQLite itself
   * would back off to 100 ms, and miss the gaps of a process that adds batch after batch.
   */
  #beginInTime(requests: Request<Transaction>[]): Request<Transaction>[] {
    for (;;) {
      const nowMs = monotonicMs()
      const inTime = requests.filter(({ deadlineMs }) => deadlineMs - sqliteMarginMs >= nowMs)
      if (inTime.length === 0) return inTime
      try {
        this.#begin.run()
        return inTime
      } catch (error) {
        /* c8 ignore next: a disk that fails: test/store/disk.slow.ts */
        if (!isBusy(error)) throw error
      }
      Atomics.wait(this.#sleeper, 0, 0, lockPollMs)
    }
  }

  #checkFiles(): void {
    const fault = this.#files.findFault()
    if (fault !== undefined) throw new FilesLost(fault)
  }

  #run(requests: Request<Transaction>[]): Done[] {
    const [first] = requests as [Request<Transaction>]
    if ('append' in first) return this.#batch.run(requests as Batch[])
    if ('probe' in first) return [0]
    return [Number(this.#db.prepare(first.text).run(first.values).changes)]
  }

  #rollBack(error: unknown, outcome: FailedOutcome): Failure {
    let broken = isBroken(error)
    try {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      /* c8 ignore next 3: a ROLLBACK fails: test/store/disk.slow.ts */
    } catch {
      broken = true
    }
    const lost = error instanceof FilesLost
    const { message } = error as Error
    const failed = isFull(error) ? `${message}: ${this.#files.path}` : message
    return { outcome, failed, code: codeOf(error), lost, broken }
  }
}
