// Runs transactions in the writer thread, one per request. A commit is acknowledged only if there was no error and the
// path still names the written files.
import { randomBytes } from 'node:crypto'
import type { NoteChange, Outcome } from '../engine.ts'
import type { FailedOutcome } from '../errors.ts'
import { checksumOf } from '../sql/checksum.ts'
import { writeNote } from '../sql/sql-store.ts'
import type { OpenDatabase } from './database.ts'
import { codeOf, isBroken, isBusy, isFull, isSyncFailure } from './errors.ts'
import { FilesLost } from './files.ts'
import { untilFree } from './settle.ts'
import { named } from './sqlite-dialect.ts'
import { type Batch, type Failure, type Request, type Result, sharedMs } from './writer-messages.ts'

/** A request stops waiting for SQLite's lock this long before its deadline, so that its outcome is certain. */
export const marginMs = 100

const insertPlant =
  'INSERT INTO plants VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) WHERE id IS NOT NULL DO NOTHING'

/** Makes the function that runs requests. */
export function makeTransactions({ db, files }: OpenDatabase): (request: Request) => Result {
  // Parsing BEGIN and COMMIT anew takes 4 % of the time of an addition.
  const [begin, commit] = [db.prepare('BEGIN IMMEDIATE'), db.prepare('COMMIT')]
  const readHead = db.prepare('SELECT coalesce(max(position), 0) AS position FROM plants')
  const insert = db.prepare(insertPlant)
  const findItem = db.prepare('SELECT item FROM plants WHERE id = ?')

  /** Runs a request atomically and at most once. */
  function run(request: Request): Result {
    const mayBeLost = 'text' in request && request.mayBeLost
    /** Outcome of a failure: unknown from COMMIT on. */
    let outcome: FailedOutcome = 'nothing-added'
    try {
      if (mayBeLost) db.exec('PRAGMA synchronous = NORMAL')
      lock(request.deadlineMs)
      files.check()
      const done = 'items' in request ? add(request) : change(request.text, request.values)
      outcome = 'unknown'
      commit.run()
      files.check()
      return { done }
    } catch (error) {
      return rollBack(error, outcome)
    } finally {
      if (mayBeLost) db.exec('PRAGMA synchronous = FULL')
    }
  }

  function lock(deadlineMs: number): void {
    const waitMs = deadlineMs - marginMs - sharedMs()
    if (waitMs < 0) throw new Error('the request was too late')
    try {
      untilFree(() => begin.run(), waitMs)
    } catch (error) {
      throw isBusy(error) ? new Error('the database was locked until it was too late') : error
    }
  }

  function change(text: string, values: Parameters<typeof insert.run>[0]): number {
    return Number(db.prepare(text).run(values).changes)
  }

  /** Adds a batch, with a fresh mark of 64 random bits; returns the outcomes in the order of its entries. */
  function add({ items, ids, note }: Batch): Outcome[] {
    const mark = randomBytes(8).toString('base64url')
    let position = Number(readHead.get()?.position)
    const outcomes = items.map((item, index) => {
      const plant = { position: position + 1, id: ids[index] ?? null, item, mark }
      const { changes } = insert.run(plant.position, plant.id, item, mark, checksumOf(plant))
      if (changes === 0) return findItem.get(plant.id)?.item === item ? 'replayed' : 'conflict'
      position++
      return 'added'
    })
    if (note) changeNote(note)
    return outcomes
  }

  function changeNote(note: NoteChange): void {
    const [text, values] = writeNote(note)
    if (change(text, named(values)) !== 1) throw new Error(`the note ${note.key} has changed`)
  }

  function rollBack(error: unknown, outcome: FailedOutcome): Failure {
    const failure = describeFailure(error, outcome)
    if (isFull(error)) failure.failed += `: ${files.path}`
    try {
      if (db.isTransaction) db.exec('ROLLBACK')
    } catch {
      failure.broken = true
    }
    return failure
  }

  return run
}

/**
 * Closes the database. If its file was moved, SQLite would leave the write-ahead log at the old path, where it would be
 * taken for the log of the next file there; so the log is emptied first.
 */
export function closeDatabase({ db, files }: OpenDatabase): void {
  try {
    if (files.findFault() !== undefined) db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // The loss itself is logged already.
  }
  db.close()
}

export function describeFailure(error: unknown, outcome: FailedOutcome): Failure {
  const { message, cause = error } = error as Error
  return {
    outcome,
    failed: message,
    code: codeOf(error),
    lost: error instanceof FilesLost,
    broken: isBroken(error),
    unsynced: isSyncFailure(cause),
  }
}
