// Runs transactions in the writer thread, one per statement, or one for all batches that wait at one moment. A commit
// is acknowledged only if there was no error and the path still names the written files.
import type { DatabaseSync } from 'node:sqlite'
import { sqliteMarginMs } from '../../../limits.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import type { Outcome } from '../../engine.ts'
import { makeEpoch } from '../../epochs.ts'
import type { FailedOutcome } from '../../errors.ts'
import { checksumOf } from '../../format/checksum.ts'
import { sameItem } from '../../format/same-item.ts'
import { keepSegment, segmentEnds } from '../../sql/segments.ts'
import { changeNote } from '../../sql/sql-store.ts'
import type { OpenDatabase } from '../database.ts'
import { codeOf, isBroken, isBusy, isFull } from '../errors.ts'
import { FilesLost, type OpenFiles } from '../files/files.ts'
import { lockPollMs } from '../files/settle.ts'
import { sqliteDialect } from '../sqlite-dialect.ts'
import type { Batch, Done, Failure, Request, Result } from './writer-messages.ts'

const late = describeFailure(new Error('the database was locked until it was too late'), 'nothing-added')

/** Prepares what each batch runs: parsing BEGIN and COMMIT anew takes 4 % of the time of an addition. */
function prepare(db: DatabaseSync) {
  return {
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    head: db.prepare('SELECT coalesce(max(position), 0) AS position FROM plants'),
    insert: db.prepare(
      'INSERT INTO plants VALUES (?, ?, ?, ?) ON CONFLICT (id) WHERE id IS NOT NULL DO NOTHING',
    ),
    known: db.prepare('SELECT item FROM plants WHERE id = ?'),
    addEpoch: db.prepare('INSERT INTO epochs SELECT coalesce(max(number), 0) + 1, ?, ? FROM epochs'),
    keepSegment: db.prepare(keepSegment(sqliteDialect)),
    changeNote: db.prepare(changeNote('?1', '?2', '?3')),
  }
}

export class Transactions {
  readonly #db: DatabaseSync
  readonly #files: OpenFiles
  readonly #sql: ReturnType<typeof prepare>
  /** True until the log grows for the first time since it was opened: that begins an epoch. */
  #epochIsDue = true

  constructor({ db, files }: OpenDatabase) {
    this.#db = db
    this.#files = files
    this.#sql = prepare(db)
  }

  /**
   * Runs one statement, or several batches, atomically and at most once; requests that are late are left out before it
   * begins. Returns one result per request.
   */
  do(requests: Request[]): Result[] {
    const results = new Map<Request, Result>(requests.map((request) => [request, late]))
    let inTime = requests
    /** Outcome of a failure: unknown from COMMIT on. */
    let outcome: FailedOutcome = 'nothing-added'
    let epochWasDue = this.#epochIsDue
    try {
      inTime = this.#beginInTime(requests)
      if (inTime.length === 0) return [...results.values()]
      this.#files.check()
      const done = this.#run(inTime)
      outcome = 'unknown'
      this.#sql.commit.run()
      epochWasDue = this.#epochIsDue
      this.#files.check()
      for (const [index, request] of inTime.entries()) results.set(request, { done: done[index] as Done })
    } catch (error) {
      this.#epochIsDue = epochWasDue
      const failure = this.#rollBack(error, outcome)
      for (const request of inTime) results.set(request, failure)
    }
    return [...results.values()]
  }

  /**
   * Begins a transaction, and returns the requests that are in time then; if none is, nothing was begun. Polls as
   * `lockForWriting` does.
   */
  #beginInTime(requests: Request[]): Request[] {
    for (;;) {
      const nowMs = monotonicMs()
      const inTime = requests.filter(({ deadlineMs }) => deadlineMs - sqliteMarginMs >= nowMs)
      if (inTime.length === 0) return inTime
      try {
        this.#sql.begin.run()
        return inTime
      } catch (error) {
        /* c8 ignore next: a disk that fails: test/store/disk.slow.ts */
        if (!isBusy(error)) throw error
      }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lockPollMs)
    }
  }

  #run(requests: Request[]): Done[] {
    const [first] = requests as [Request]
    if ('items' in first) return this.#insert(requests as Batch[])
    return [Number(this.#db.prepare(first.text).run(first.values).changes)]
  }

  /** Inserts batches; returns the outcomes of each, in the order of its entries. */
  #insert(batches: Batch[]): Outcome[][] {
    const start = Number(this.#sql.head.get()?.position)
    let position = start
    const outcomes = batches.map(({ items, ids }) =>
      items.map((item, index) => {
        const outcome = this.#add(position + 1, item, ids[index] ?? null)
        if (outcome === 'added') position++
        return outcome
      }),
    )
    if (this.#epochIsDue && position > start) {
      this.#sql.addEpoch.run(makeEpoch(), start)
      this.#epochIsDue = false
    }
    for (const last of segmentEnds(start, position)) this.#sql.keepSegment.run({ 1: last })
    for (const { note } of batches) if (note) this.#sql.changeNote.run(note.key, note.value, note.before)
    return outcomes
  }

  #add(position: number, item: string, id: number | null): Outcome {
    if (this.#sql.insert.run(position, id, item, checksumOf(position, id, item)).changes === 1) return 'added'
    return sameItem(String(this.#sql.known.get(id)?.item), item) ? 'replayed' : 'conflict'
  }

  #rollBack(error: unknown, outcome: FailedOutcome): Failure {
    const failure = describeFailure(error, outcome)
    try {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      /* c8 ignore next 3: a ROLLBACK fails: test/store/disk.slow.ts */
    } catch {
      failure.broken = true
    }
    if (isFull(error)) failure.failed += `: ${this.#files.path}`
    return failure
  }

  /**
   * Closes the database. When its file was moved, SQLite would leave the write-ahead log at the old path, where it would
   * be taken for the log of the next file there; so it is emptied first.
   */
  close(): void {
    try {
      if (this.#files.findFault() !== undefined) this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      /* c8 ignore next 3: the disk fails as well */
    } catch {
      // The loss itself is logged already.
    }
    this.#db.close()
  }
}

export function describeFailure(error: unknown, outcome: FailedOutcome): Failure {
  return {
    outcome,
    failed: (error as Error).message,
    code: codeOf(error),
    lost: error instanceof FilesLost,
    broken: isBroken(error),
  }
}
