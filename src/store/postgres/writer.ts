// Writes to PostgreSQL: one transaction at a time, on a dedicated connection. Plants are added exactly once, even if
// the response to a COMMIT is lost.
import { randomBytes } from 'node:crypto'
import type { QueryConfig } from 'pg'
import { checksumOf, type Entry, type NoteChange, type Outcome, type PlantLog } from '../engine.ts'
import { StoreRefused, StoreUnavailable } from '../errors.ts'
import { storeLimitMs, withTimeout } from '../in-time.ts'
import { type Sql, writeNote } from '../sql/sql.ts'
import { refuse } from './failures.ts'
import type { Link } from './link.ts'
import type { Session } from './session.ts'
import { attemptMs } from './time-outs.ts'

/**
 * The result of a transaction, and the statement to send with its COMMIT. `trace`: a query that finds a row if the
 * transaction was committed; `none` if no such query exists; absent if the transaction changes nothing.
 */
type Planned<T> = { result: T; change?: QueryConfig; trace?: QueryConfig | 'none' }
/**
 * Plans a transaction. A plan that only reads (`readsOnly`) is pipelined with BEGIN. A plan that changes something waits
 * for it, because the changes would be committed one by one if only BEGIN failed.
 */
type Plan<T> = (session: Session) => Promise<Planned<T>>

/** `link`: for commits; `heads`: the one that reads heads; `minors`: for minor statements, which may wait for locks. */
export function makeWriter({ link, heads, minors }: Record<'link' | 'heads' | 'minors', Link>) {
  let turn = Promise.resolve()
  let lastMinor: Promise<unknown> | undefined

  function inTurn<T>(plan: Plan<T>, deadlineMs = performance.now() + storeLimitMs, readsOnly = false) {
    const makeError = () => new Error('timed out waiting for earlier transactions')
    const done = withTimeout(turn, deadlineMs - performance.now(), makeError)
      .catch(refuse('nothing-added'))
      .then(() => commitOnce(plan, deadlineMs, readsOnly))
    // Without the results, which the chain would keep in memory.
    turn = Promise.allSettled([turn, done]).then(() => {})
    return done
  }

  /**
   * Commits a transaction. If the connection is lost after COMMIT was sent, the outcome is unknown. The next attempt
   * waits for the end of that transaction, because it takes the lock, and then looks for its trace. A commit that waits
   * for the standbys confirms the transaction, which may not be on them yet.
   */
  async function commitOnce<T>(plan: Plan<T>, deadlineMs: number, readsOnly: boolean): Promise<T> {
    /** The transaction whose COMMIT was sent, until another attempt shows that it is not in the log. */
    let sent: { result: T; trace: QueryConfig | 'none'; failure?: string } | undefined
    /** True once a server had the transaction: the outcome is then unknown even if the next server lacks it. */
    let wasFound = false
    const attempt = async (session: Session) => {
      if (sent?.trace === 'none') throw new StoreUnavailable('unknown', `COMMIT failed: ${sent.failure}`)
      const locked = lockHead(session)
      if (sent || !readsOnly) await locked
      if (sent && (await session.query(sent.trace)).rows.length > 0) {
        wasFound = true
        await session.commit('COMMIT')
        return sent.result
      }
      sent = undefined
      const [{ result, change, trace }] = await Promise.all([plan(session), locked])
      if (trace) sent = { result, trace }
      const changing = change && session.query(change)
      changing?.catch(() => {})
      try {
        // The server rolls back if it refused the change.
        if (!(await session.commit('COMMIT'))) sent = undefined
        await changing
      } catch (error) {
        if (!sent) throw error
        // The server may show plants that no standby has. It may have committed even after an error, such as of a sync.
        heads.drop()
        // Not the error of the server, which would prevent another attempt.
        sent.failure = (error as Error).message
        throw new Error(sent.failure)
      }
      return result
    }
    return link
      .run(attempt, deadlineMs)
      .catch((cause) => refuse(sent || wasFound ? 'unknown' : 'nothing-added')(cause))
  }

  const append: PlantLog['append'] = (entries, { deadlineMs, notes } = {}) =>
    inTurn((session) => planBatch(session, entries, notes), deadlineMs, notes === undefined)
  const execute: Sql['execute'] = (text, values = [], isMinor = false) => {
    const change = async (session: Session) => Number((await session.query({ text, values })).rowCount)
    if (!isMinor) return inTurn(async (session) => ({ result: await change(session), trace: 'none' }))
    const changeMinor = async (session: Session) => {
      // No time-out would end an abandoned wait for standbys.
      await session.query('SET synchronous_commit = off')
      return change(session)
    }
    const done = minors.run(changeMinor, performance.now() + attemptMs).catch(refuse('unknown'))
    lastMinor = Promise.allSettled([done])
    return done
  }
  /** `idle` resolves when no transaction is running. */
  return { append, execute, idle: () => Promise.all([turn, lastMinor]) }
}

async function planBatch(session: Session, entries: Entry[], notes: NoteChange[] = []) {
  const ids = entries.flatMap(({ id }) => id ?? [])
  const [{ rows }] = await Promise.all([
    session.query<Found>({ ...findPlants, values: [`{${ids}}`] }),
    ...notes.map((note) => changeNote(session, note)),
  ])
  const { position, items } = rows[0] as Found
  const outcomes = decide(entries, items ?? {})
  const added = entries.filter((_, n) => outcomes[n] === 'added')
  if (added.length > 0) return { result: outcomes, ...insertPlants(position, added) }
  // A note can be the trace: another process that writes the same value also adds nothing.
  const [note] = notes
  return { result: outcomes, ...(note && { trace: { text: findNote, values: [note.key, note.value] } }) }
}

const findNote = 'SELECT FROM meta WHERE key = $1 AND value = $2'

/**
 * Locks the head. The row is not updated, because each update would leave a dead row. Even so, the lock makes COMMIT
 * wait until everything that the transaction saw is on the standbys.
 */
async function lockHead(session: Session): Promise<void> {
  const [, { rows }] = await Promise.all([
    session.query('BEGIN ISOLATION LEVEL READ COMMITTED'),
    session.query({ name: 'lock', text: 'SELECT FROM head FOR UPDATE' }),
  ])
  if (rows.length === 0) throw new StoreRefused('the table head has no row to lock')
}

/** Finds the head and the items with these ids. The statement that locks cannot do this: its snapshot is older. */
const findPlants = {
  name: 'find',
  text: `
    SELECT coalesce(max(position), 0) AS position,
      (SELECT json_object_agg(id, item) FROM plants WHERE id = ANY($1) AND id IS NOT NULL) AS items
    FROM plants`,
}
type Found = { position: number; items: Record<number, string> | null }

async function changeNote(session: Session, note: NoteChange): Promise<void> {
  const { rowCount } = await session.query(writeNote(note))
  if (rowCount !== 1) throw new StoreUnavailable('nothing-added', `the note ${note.key} has changed`)
}

/** Decides the outcomes of the entries, in order; adds new ids to `known`. */
function decide(entries: Entry[], known: Record<number, string>): Outcome[] {
  return entries.map(({ id, item }) => {
    const found = id === undefined ? undefined : known[id]
    if (found !== undefined) return found === item ? 'replayed' : 'conflict'
    if (id !== undefined) known[id] = item
    return 'added'
  })
}

/** Builds the query that inserts entries after `position` with a new mark, and the query that finds the mark. */
function insertPlants(position: number, entries: Entry[]): { change: QueryConfig; trace: QueryConfig } {
  const mark = randomBytes(8).toString('base64url')
  const ids = entries.map(({ id }) => id ?? 'NULL')
  // Our JSON contains no line feeds. Quoting each item for an array would take longer than the rest of the insertion.
  const items = entries.map(({ item }) => item).join('\n')
  const checksums = entries.map(({ id = null, item }, n) =>
    checksumOf({ position: position + 1 + n, id, item, mark }),
  )
  const values = [position, `{${ids}}`, items, mark, `{${checksums}}`]
  return {
    change: { name: 'insert', text: insert, values },
    trace: { text: 'SELECT FROM plants WHERE position = $1 AND mark = $2', values: [position + 1, mark] },
  }
}

/**
 * Fails if a trigger of the administrator has skipped a row: the text in the last line is then neither NULL nor an
 * integer. PostgreSQL refuses this statement if the table has a rule.
 */
const insert = `
  WITH inserted AS (
    INSERT INTO plants (position, id, item, mark, checksum) SELECT $1::bigint + n, id, item, $4, checksum
    FROM unnest($2::bigint[], string_to_array($3, chr(10)), $5::bigint[]) WITH ORDINALITY
      AS added (id, item, checksum, n) RETURNING 1)
  SELECT (nullif(count(*), cardinality($2)) || ' rows inserted: a trigger skips plants')::int FROM inserted`
