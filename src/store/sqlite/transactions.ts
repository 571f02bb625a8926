// Runs transactions in the writer thread, one per request. A commit is acknowledged only if there was no error and the
// path still names the written files.
import { randomBytes } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import type { NoteChange, Outcome } from '../engine.ts'
import type { FailedOutcome } from '../errors.ts'
import { checksumOf } from '../sql/checksum.ts'
import { writeNote } from '../sql/sql-store.ts'
import type { OpenDatabase } from './database.ts'
import { codeOf, isBroken, isBusy, isFull, isSyncFailure } from './errors.ts'
import { FilesLost } from './files.ts'
import { untilFree } from './settle.ts'
import { named } from './sqlite-dialect.ts'
import {
  type Batch,
  type Done,
  type Failure,
  type Request,
  type Result,
  sharedMs,
} from './writer-messages.ts'

/** A request stops waiting for SQLite's lock this long before its deadline, so that its outcome is certain. */
export const marginMs = 100

/** Prepares what each batch runs: parsing BEGIN and COMMIT anew takes 4 % of the time of an addition. */
function prepare(db: DatabaseSync) {
  return {
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    head: db.prepare('SELECT coalesce(max(position), 0) AS position FROM plants'),
    insert: db.prepare(
      'INSERT INTO plants VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) WHERE id IS NOT NULL DO NOTHING',
    ),
    known: db.prepare('SELECT item FROM plants WHERE id = ?'),
  }
}

export class Transactions {
  readonly #database: OpenDatabase
  readonly #db: DatabaseSync
  readonly #sql: ReturnType<typeof prepare>

  constructor(database: OpenDatabase) {
    this.#database = database
    this.#db = database.db
    this.#sql = prepare(this.#db)
  }

  /** Runs a request atomically and at most once. */
  do(request: Request): Result {
    const { files } = this.#database
    /** Outcome of a failure: unknown from COMMIT on. */
    let outcome: FailedOutcome = 'nothing-added'
    try {
      if ('text' in request && request.mayBeLost) this.#db.exec('PRAGMA synchronous = NORMAL')
      this.#begin(request.deadlineMs)
      files.check()
      const done = this.#run(request)
      outcome = 'unknown'
      this.#sql.commit.run()
      files.check()
      return { done }
    } catch (error) {
      return this.#rollBack(error, outcome)
    } finally {
      if ('text' in request && request.mayBeLost) this.#db.exec('PRAGMA synchronous = FULL')
    }
  }

  #begin(deadlineMs: number): void {
    const waitMs = deadlineMs - marginMs - sharedMs()
    if (waitMs < 0) throw new Error('the request was too late')
    try {
      untilFree(() => this.#sql.begin.run(), waitMs)
    } catch (error) {
      throw isBusy(error) ? new Error('the database was locked until it was too late') : error
    }
  }

  #run(request: Request): Done {
    if ('items' in request) return this.#insert(request)
    return Number(this.#db.prepare(request.text).run(request.values).changes)
  }

  /** Inserts a batch; returns the outcomes in the order of its entries. */
  #insert({ items, ids, note }: Batch): Outcome[] {
    const mark = makeMark()
    let position = Number(this.#sql.head.get()?.position)
    const outcomes = items.map((item, index) => {
      const plant = { position: position + 1, id: ids[index] ?? null, item, mark }
      const { insert, known } = this.#sql
      if (insert.run(plant.position, plant.id, item, mark, checksumOf(plant)).changes === 1) {
        position++
        return 'added'
      }
      return known.get(plant.id)?.item === item ? 'replayed' : 'conflict'
    })
    if (note) this.#changeNote(note)
    return outcomes
  }

  #changeNote(note: NoteChange): void {
    const [text, values] = writeNote(note)
    if (this.#db.prepare(text).run(named(values)).changes !== 1)
      throw new Error(`the note ${note.key} has changed`)
  }

  #rollBack(error: unknown, outcome: FailedOutcome): Failure {
    const failure = describeFailure(error, outcome)
    try {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
    } catch {
      failure.broken = true
    }
    if (isFull(error)) failure.failed += `: ${this.#database.files.path}`
    return failure
  }

  /**
   * Closes the database. If its file was moved, SQLite would leave the write-ahead log at the old path, where it would be
   * taken for the log of the next file there; so the log is emptied first.
   */
  close(): void {
    try {
      if (this.#database.files.findFault() !== undefined) this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // The loss itself is logged already.
    }
    this.#db.close()
  }
}

/** Makes the mark of a commit attempt: 64 random bits. */
function makeMark(): string {
  return randomBytes(8).toString('base64url')
}

export function describeFailure(error: unknown, outcome: FailedOutcome): Failure {
  const { message, cause } = error as Error
  return {
    outcome,
    failed: message,
    code: codeOf(error),
    lost: error instanceof FilesLost,
    broken: isBroken(error),
    unsynced: isSyncFailure(error) || (cause !== undefined && isSyncFailure(cause)),
  }
}
