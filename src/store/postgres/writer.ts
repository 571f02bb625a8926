// What changes the PostgreSQL database: one transaction at a time on a connection of its own, done exactly once even
// when the answer to its COMMIT is lost.
import type { QueryConfig } from 'pg'
import { storeLimitMs } from '../../limits.ts'
import { checksumOf } from '../checksum.ts'
import { setMark } from '../marks.ts'
import { sameItem } from '../same-item.ts'
import { keepSegment, segmentEnds } from '../segments.ts'
import { type Entry, type Mark, type Outcome, StoreUnavailable, type Value } from '../store.ts'
import { beginEpoch, findOrigin } from './epochs.ts'
import { isFinal, refuse, unavailable } from './failures.ts'
import type { Link } from './links.ts'
import { noteText, type Session } from './session.ts'

/** Where the log ends, and which table says so: it is another one after a dump was restored. */
type LockedHead = { position: number; table: number }
/** What a transaction comes to, and what is left to be sent along with its COMMIT. */
type Planned<T> = { result: T; changes: QueryConfig[]; committed?: () => void }
/** Its first queries go out together with the one that takes the lock and reads the head. */
type Plan<T> = (session: Session, head: Promise<LockedHead>) => Promise<Planned<T>>

export class PostgresWriter {
  readonly #link: Link
  /** Names this writer; with the number of its last batch it tells, in the database, what was committed. */
  readonly #id: string
  #batch = 0
  #turn: Promise<unknown> = Promise.resolve()
  /** The origin of the latest epoch where it is known to be the session's own. */
  readonly #origins = new WeakMap<Session, string>()

  constructor(link: Link, id: string) {
    this.#link = link
    this.#id = id
  }

  /** Leaves a first note: from here on a missing one is no proof that nothing was committed. */
  async begin(...queries: QueryConfig[]): Promise<void> {
    const note = { text: noteText, values: [this.#id, 0] }
    await this.#link.run((session) => session.commit([...queries, note]))
  }

  append(entries: Entry[], deadlineMs?: number, mark?: Mark): Promise<Outcome[]> {
    const ids = entries.flatMap(({ id }) => id ?? [])
    return this.#inTurn(async (session, head) => {
      const known = this.#origins.get(session)
      const [{ position, table }, items, latest] = await Promise.all([
        head,
        findItems(session, ids),
        known ?? findOrigin(session),
      ])
      const origin = `${session.origin.name}/${table}`
      if (known !== undefined && known !== origin) throw new Error('the tables were replaced meanwhile')
      const { outcomes, added } = judge(entries, items)
      const marks = mark ? [{ text: setMark('$1', '$2'), values: [mark.key, mark.value] }] : []
      if (added.length === 0) return { result: outcomes, changes: marks }
      const changes = [insert(position, added), ...keepSegments(position, added.length), ...marks]
      if (latest !== origin) changes.push(beginEpoch(position, origin))
      return { result: outcomes, changes, committed: () => this.#origins.set(session, origin) }
    }, deadlineMs)
  }

  execute(text: string, values: Value[]): Promise<number> {
    return this.#inTurn(async (session) => {
      const { rowCount } = await session.query({ text, values })
      return { result: Number(rowCount), changes: [] }
    })
  }

  /** Resolves when nothing is under way any more. */
  async idle(): Promise<void> {
    await this.#turn
  }

  async #inTurn<T>(plan: Plan<T>, deadlineMs = performance.now() + storeLimitMs): Promise<T> {
    const before = this.#turn
    const done = Promise.withResolvers<void>()
    this.#turn = before.then(() => done.promise)
    const late = Promise.withResolvers<never>()
    const tooLate = () => late.reject(new Error('its turn did not come in time'))
    const timer = setTimeout(tooLate, Math.max(0, deadlineMs - performance.now()))
    try {
      await Promise.race([before, late.promise]).catch(refuse('nothing-added'))
      return await this.#commit(plan, deadlineMs)
    } finally {
      clearTimeout(timer)
      done.resolve()
    }
  }

  /**
   * When a connection breaks after COMMIT was sent, nobody knows yet whether it happened. The lock makes the next
   * attempt wait for the end of that transaction; the batch number, read after it, then says how it ended.
   */
  async #commit<T>(plan: Plan<T>, deadlineMs: number): Promise<T> {
    const batch = ++this.#batch
    let sent: Planned<T> | undefined
    try {
      return await this.#link.run(async (session) => {
        const head = lockHead(session)
        if (sent && (await this.#lastBatch(session, head)) !== batch) sent = undefined
        const [{ result, changes, committed }] = await Promise.all([sent ?? plan(session, head), head])
        /* c8 ignore next: the time is up in the same moment */
        if (session.destroyed) throw new Error('the time was up before COMMIT')
        sent = { result, changes: [] }
        await session.commit([...changes, ...commit(this.#id, batch)]).catch((error) => {
          // The server refused a statement, and with it all of the transaction.
          if (isFinal(error)) sent = undefined
          throw error
        })
        committed?.()
        return result
      }, deadlineMs)
    } catch (cause) {
      throw unavailable(sent ? 'unknown' : 'nothing-added', cause)
    }
  }

  /** Rejects when the note is gone: what it would have said is lost. */
  async #lastBatch(session: Session, head: Promise<LockedHead>): Promise<number> {
    await head
    const { rows } = await session.query({
      text: 'SELECT batch FROM writers WHERE id = $1',
      values: [this.#id],
    })
    if (rows.length > 0) return rows[0].batch
    throw new StoreUnavailable(
      'unknown',
      `${session.server} does not know this writer: the note of its batch is gone`,
    )
  }
}

/** In a statement of its own: those after it see all that was committed before the lock was given to us. */
async function lockHead(session: Session): Promise<LockedHead> {
  const text = 'SELECT position, tableoid AS table FROM head FOR UPDATE'
  const [, { rows }] = await Promise.all([
    session.query('BEGIN ISOLATION LEVEL READ COMMITTED'),
    session.query<LockedHead>({ name: 'lock', text }),
  ])
  return rows[0] as LockedHead
}

/** The note is written in every batch: so a COMMIT always waits until all that it saw is on the standbys, too. */
function commit(writer: string, batch: number): QueryConfig[] {
  return [{ name: 'note', text: noteText, values: [writer, batch] }, { text: 'COMMIT' }]
}

/** The items that are in the log under these ids. */
async function findItems(session: Session, ids: number[]): Promise<Map<number, string>> {
  if (ids.length === 0) return new Map()
  const text = 'SELECT id, item FROM plants WHERE id = ANY($1) AND id IS NOT NULL'
  const query = { name: 'known', text, values: [toArray(ids)], rowMode: 'array' as const }
  return new Map((await session.queryArrays<[number, string]>(query)).rows)
}

/** Outcomes in the order of the entries; `known` takes in the ids that are added. */
function judge(entries: Entry[], known: Map<number, string>): { outcomes: Outcome[]; added: Entry[] } {
  const added: Entry[] = []
  const outcomes = entries.map((entry): Outcome => {
    const item = entry.id === undefined ? undefined : known.get(entry.id)
    if (item !== undefined) return sameItem(item, entry.item) ? 'replayed' : 'conflict'
    if (entry.id !== undefined) known.set(entry.id, entry.item)
    added.push(entry)
    return 'added'
  })
  return { outcomes, added }
}

/** Puts the entries at the positions after `position`, and moves the head. */
function insert(position: number, entries: Entry[]): QueryConfig {
  const text = `
    WITH moved AS (UPDATE head SET position = $4)
    INSERT INTO plants (position, id, item, checksum) SELECT $1::bigint + n, id, item, checksum
    FROM unnest($2::bigint[], string_to_array($3, chr(10)), $5::bigint[]) WITH ORDINALITY
      AS added (id, item, checksum, n)`
  const ids = toArray(entries.map(({ id }) => id ?? 'NULL'))
  // JSON of the service holds no line feed. To quote each item for an array would take longer than all the rest.
  const items = entries.map(({ item }) => item).join('\n')
  const checksums = toArray(entries.map(({ id, item }, n) => checksumOf(position + 1 + n, id, item)))
  return { name: 'insert', text, values: [position, ids, items, position + entries.length, checksums] }
}

/** Keeps the segments that are complete with so many plants more. */
function keepSegments(position: number, count: number): QueryConfig[] {
  return segmentEnds(position, position + count).map((last) => ({
    name: 'segment',
    text: keepSegment('PostgreSQL'),
    values: [last],
  }))
}

/** An array as PostgreSQL writes it. */
function toArray(values: (number | 'NULL')[]): string {
  return `{${values.join()}}`
}
