// Writes to PostgreSQL: one transaction at a time on a separate connection, exactly once even if the answer to its
// COMMIT is lost.

import type { QueryConfig } from 'pg'
import { storeLimitMs } from '../../limits.ts'
import { withTimeout } from '../../runtime/with-timeout.ts'
import type { PlantLog } from '../engine.ts'
import { StoreRefused, StoreUnavailable } from '../errors.ts'
import type { Sql } from '../sql/sql.ts'
import { changeNote } from '../sql/sql-store.ts'
import { beginEpoch, findOrigin, lastPosition } from './epoch-notes.ts'
import { fail, isFinal, refuse } from './failures.ts'
import type { Link } from './links.ts'
import { findItems, insert, judge, keepSegments } from './plant-batch.ts'
import { databaseMs, type Session } from './session.ts'

/** Age at which a note is useless: it is looked up within seconds after its batch. */
const noteMs = 24 * 60 * 60 * 1000
/** Number of its own notes that a writer deletes at a time. */
const notesAtOnce = 100

/** The result of a transaction, and the statements to send with its COMMIT. */
type Planned<T> = { result: T; changes: QueryConfig[] }
/** Plans a transaction. Its first queries are pipelined with the one that takes the lock. */
type Plan<T> = (session: Session, locked: Promise<number>) => Promise<Planned<T>>

export class PostgresWriter {
  readonly #link: Link
  readonly #heads: Link
  /** Identifies this writer in its notes, each of which tells that a batch was committed. */
  readonly #id: string
  #batch = 0
  #turn: Promise<unknown> = Promise.resolve()
  /** Sessions whose origin is known to be that of the latest epoch. */
  readonly #origins = new WeakMap<Session, string>()

  /** `heads`: the connection on which lists find out what there is. */
  constructor(link: Link, heads: Link, id: string) {
    this.#link = link
    this.#heads = heads
    this.#id = id
  }

  /** Waits for a server, and writes a first note, so that from here on a writer without notes has lost them. */
  async begin(deadlineMs: number): Promise<void> {
    const removal = { text: `DELETE FROM writers WHERE seen_at < ${databaseMs} - ${noteMs}` }
    const note = { text: `${insertNote} ON CONFLICT DO NOTHING`, values: [this.#id, 0] }
    await this.#link.run((session) => session.commit([removal, note]), deadlineMs)
  }

  readonly append: PlantLog['append'] = (entries, deadlineMs, note) => {
    const ids = entries.flatMap(({ id }) => id ?? [])
    return this.#inTurn(async (session, locked) => {
      const known = this.#origins.get(session)
      const [table, position, items, latest] = await Promise.all([
        locked,
        findPosition(session),
        findItems(session, ids),
        known ?? findOrigin(session),
      ])
      const origin = `${session.origin.name}/${table}`
      if (known !== undefined && known !== origin) throw new Error('the tables were replaced meanwhile')
      const { outcomes, added } = judge(entries, items)
      const changes: QueryConfig[] = note
        ? [{ text: change, values: [note.key, note.value, note.before] }]
        : []
      if (added.length === 0) return { result: outcomes, changes }
      changes.push(insert(position, added), ...keepSegments(position, added.length))
      if (latest !== origin) changes.push(beginEpoch(position, origin))
      // Safe before the commit: a session whose transaction fails is not used again.
      this.#origins.set(session, origin)
      return { result: outcomes, changes }
    }, deadlineMs)
  }

  readonly execute: Sql['execute'] = (text, values = []) => {
    return this.#inTurn(async (session) => {
      const { rowCount } = await session.query({ text, values })
      return { result: Number(rowCount), changes: [] }
    })
  }

  /** Resolves when no transaction is running. */
  async idle(): Promise<void> {
    await this.#turn
  }

  async #inTurn<T>(plan: Plan<T>, deadlineMs = performance.now() + storeLimitMs): Promise<T> {
    const before = this.#turn
    const done = Promise.withResolvers<void>()
    this.#turn = before.then(() => done.promise)
    const tooLate = fail('its turn did not come in time')
    try {
      await withTimeout(before, deadlineMs - performance.now(), tooLate).catch(refuse('nothing-added'))
      return await this.#commit(plan, deadlineMs)
    } finally {
      done.resolve()
    }
  }

  /**
   * Commits a transaction. When the connection is lost after COMMIT was sent, the outcome is unknown: the lock makes
   * the next attempt wait for the end of that transaction, and its note tells whether it was committed. As it may still
   * be missing on the standbys, it is confirmed by a commit that waits for them.
   */
  async #commit<T>(plan: Plan<T>, deadlineMs: number): Promise<T> {
    const batch = ++this.#batch
    let sent: { result: T } | undefined
    let wasFound = false
    try {
      return await this.#link.run(async (session) => {
        const locked = lockHead(session)
        if (sent && (await this.#isThere(session, locked, batch))) {
          wasFound = true
          await session.commit([commit])
          return sent.result
        }
        sent = undefined
        const [{ result, changes }] = await Promise.all([plan(session, locked), locked])
        sent = { result }
        await session.commit([...changes, ...this.#note(batch), commit]).catch((error) => {
          // The server refused a statement, and with it the transaction. Otherwise it may show what no standby has.
          if (isFinal(error)) sent = undefined
          else this.#heads.renew()
          throw error
        })
        return result
      }, deadlineMs)
    } catch (cause) {
      return refuse(sent || wasFound ? 'unknown' : 'nothing-added')(cause)
    }
  }

  /** True when a batch was committed. Rejects when this writer has no notes at all: they were lost. */
  async #isThere(session: Session, locked: Promise<number>, batch: number): Promise<boolean> {
    await locked
    const text = 'SELECT max(batch) AS last FROM writers WHERE id = $1'
    const { rows } = await session.query<{ last: number | null }>({ text, values: [this.#id] })
    const last = rows[0]?.last ?? null
    if (last !== null) return last === batch
    throw new StoreUnavailable(
      'unknown',
      `${session.server} does not know this writer: the note of its batch is gone`,
    )
  }

  /** Query for the note of a batch. Notes are inserted, as updated rows would pile up behind an open snapshot. */
  #note(batch: number): QueryConfig[] {
    const note = { name: 'note', text: insertNote, values: [this.#id, batch] }
    if (batch % notesAtOnce !== 0) return [note]
    // A range of batches, as a scan from the oldest would visit deleted rows each time.
    const text = `DELETE FROM writers WHERE id = $1 AND batch BETWEEN $2::bigint - ${10 * notesAtOnce} AND $2 - 1`
    return [note, { text, values: [this.#id, batch] }]
  }
}

const insertNote = `INSERT INTO writers VALUES ($1, $2, ${databaseMs})`
const change = changeNote('$1', '$2', '$3')
const commit: QueryConfig = { text: 'COMMIT' }

/**
 * Locks the head; resolves to the id of its table, which changes when a dump is restored. The row is not updated, as
 * each update would leave a dead row. Even so, the lock makes COMMIT wait until all that the transaction saw is on the
 * standbys.
 */
async function lockHead(session: Session): Promise<number> {
  const [, { rows }] = await Promise.all([
    session.query('BEGIN ISOLATION LEVEL READ COMMITTED'),
    session.query<{ table: number }>({ name: 'lock', text: 'SELECT tableoid AS table FROM head FOR UPDATE' }),
  ])
  if (!rows[0]) throw new StoreRefused('the table head has no row to be locked')
  return rows[0].table
}

/** Reads the head in a separate statement: that of the lock has an older snapshot. */
async function findPosition(session: Session): Promise<number> {
  const text = `SELECT ${lastPosition} AS position`
  const { rows } = await session.query<{ position: number }>({ name: 'position', text })
  return (rows[0] as { position: number }).position
}
