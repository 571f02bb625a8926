// One transaction per request, in the writer thread. What was committed is acknowledged only when nothing about it is
// odd: no error, and the path still names the files that were written.
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { sqliteMarginMs } from '../../limits.ts'
import type { Lost } from '../store.ts'
import { BatchInsert } from './batch.ts'
import type { OpenDatabase } from './database.ts'
import { codeOf, isBroken, isBusy } from './errors.ts'
import { OpenFiles } from './files.ts'
import { type Done, type Failure, monotonicMs, type Request } from './messages.ts'
import type { WalIndex } from './wal-index.ts'

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
  readonly #files: OpenFiles

  constructor(path: string, { db, ids }: OpenDatabase, index: WalIndex) {
    this.#db = db
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#batch = new BatchInsert(db)
    this.#index = index
    this.#files = new OpenFiles(path, ids, index)
  }

  do(request: Request): { done: Done } | Failure {
    try {
      this.#checkFiles('nothing-added')
      const done = this.#prepare(request)
      this.#end('probe' in request)
      return { done }
    } catch (error) {
      if (error instanceof Failed) return error.failure
      return this.#rollBack(error)
    }
  }

  /** Everything before the COMMIT: whatever fails here can be rolled back. */
  #prepare(request: Request): Done {
    const leftMs = Math.floor(request.deadlineMs - monotonicMs()) - sqliteMarginMs
    if (leftMs < 0) throw new Error('the database was busy until it was too late for this batch')
    this.#db.exec(`PRAGMA busy_timeout = ${leftMs}`)
    this.#begin.run()
    const done = this.#run(request)
    this.#checkIndex()
    return done
  }

  #run(request: Request): Done {
    if ('append' in request) return this.#batch.run(request.append)
    if ('probe' in request) return 0
    return Number(this.#db.prepare(request.text).run(request.values).changes)
  }

  /** A COMMIT over an index that has lost its content would hide all frames before its own. */
  #checkIndex(): void {
    this.#index.restore()
    if (!this.#index.read().lost) return
    throw new Error('the -shm file was overwritten')
  }

  #end(isProbe: boolean): void {
    if (isProbe) {
      this.#db.exec('ROLLBACK')
      return
    }
    try {
      this.#commit.run()
    } catch (error) {
      // BUSY leaves the transaction open. After anything else the disk may hold what it would not confirm.
      if (isBusy(error)) throw error
      throw new Failed({ ...this.#rollBack(error), outcome: 'unknown' })
    }
    this.#batch.committed()
    if (this.#index.read().lost) this.#index.discard()
    this.#checkFiles('unknown')
  }

  #checkFiles(outcome: Lost): void {
    const fault = this.salvage()
    if (fault !== undefined) throw new Failed({ outcome, failed: fault, code: 0, lost: true })
  }

  /**
   * What is wrong with the files. When they were moved, the write-ahead log is emptied into the file that is open: it is
   * complete then, and the `-wal` at the path is not taken for that of the next file there.
   */
  salvage(): string | undefined {
    const found = this.#files.findFault()
    try {
      if (found?.salvage) this.#db.exec('PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // What is lost already cannot be lost again: the fault itself is what the operator hears of.
    }
    return found?.fault
  }

  #rollBack(error: unknown): Failure {
    let broken = isBroken(error)
    try {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
    } catch {
      broken = true
    }
    return { outcome: 'nothing-added', failed: (error as Error).message, code: codeOf(error), broken }
  }
}
