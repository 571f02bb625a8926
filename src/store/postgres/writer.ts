// What changes the PostgreSQL database: one transaction at a time on a connection of its own, done exactly once even
// when the answer to its COMMIT is lost.
import { randomBytes } from 'node:crypto'
import type { Client, QueryArrayConfig, QueryConfig, QueryResult } from 'pg'
import type { Entry, Outcome, Value } from '../store.ts'
import type { SeenHead } from './head.ts'
import { isFinal, type Link, limitMs } from './links.ts'

/** What a transaction comes to, where the log ends then, and what is left to be sent along with its COMMIT. */
type Planned<T> = { result: T; end: number; changes: QueryConfig[] }
/** Its first query goes out together with the one that takes the lock and reads the head. */
type Plan<T> = (client: Client, head: Promise<number>) => Promise<Planned<T>>

export class PostgresWriter {
  readonly #link: Link
  readonly #seen: SeenHead
  /** A random name for this writer; with the number of its last batch it tells, in the database, what was committed. */
  readonly #id = randomBytes(16).toString('base64url')
  #batch = 0
  #turn: Promise<unknown> = Promise.resolve()

  constructor(link: Link, seen: SeenHead) {
    this.#link = link
    this.#seen = seen
  }

  append(entries: Entry[]): Promise<Outcome[]> {
    const ids = entries.flatMap(({ id }) => id ?? [])
    return this.#inTurn(async (client, head) => {
      const [position, known] = await Promise.all([head, findItems(client, ids)])
      const { outcomes, added } = judge(entries, known)
      const changes = added.length > 0 ? [insert(position, added)] : []
      return { result: outcomes, end: position + added.length, changes }
    })
  }

  execute(text: string, values: Value[]): Promise<number> {
    return this.#inTurn(async (client) => {
      const { rowCount } = await client.query(text, values)
      return { result: Number(rowCount), end: 0, changes: [] }
    })
  }

  /** Resolves when nothing is under way any more. */
  async idle(): Promise<void> {
    await this.#turn
  }

  #inTurn<T>(plan: Plan<T>): Promise<T> {
    const deadline = Date.now() + limitMs
    const done = this.#turn.then(() => this.#commit(plan, deadline))
    this.#turn = done.catch(() => {})
    return done
  }

  /**
   * When a connection breaks after COMMIT was sent, nobody knows yet whether it happened. The lock makes the next
   * attempt wait for the end of that transaction; the batch number, read after it, then says how it ended.
   */
  async #commit<T>(plan: Plan<T>, deadline: number): Promise<T> {
    const batch = ++this.#batch
    let sent: Planned<T> | undefined
    try {
      return await this.#link.run(async (client) => {
        const head = this.#seen.check(() => lockHead(client))
        if (sent && (await this.#lastBatch(client, head)) !== batch) sent = undefined
        const [{ result, end, changes }] = await Promise.all([sent ?? plan(client, head), head])
        sent = { result, end, changes: [] }
        await Promise.all([...changes, commit(this.#id, batch)].map((query) => client.query(query))).catch(
          (error) => {
            // The server refused a statement, and with it all of the transaction.
            if (isFinal(error)) sent = undefined
            throw error
          },
        )
        this.#seen.note(end)
        return result
      }, deadline)
    } catch (cause) {
      throw unavailable(
        sent
          ? 'The store stopped while it worked on the request; whether the plant was added is unknown.'
          : 'The store cannot take plants now; nothing was added.',
        cause,
      )
    }
  }

  async #lastBatch(client: Client, head: Promise<number>): Promise<number | undefined> {
    await head
    const { rows } = await client.query('SELECT batch FROM writers WHERE id = $1', [this.#id])
    return rows[0]?.batch
  }
}

/** In a statement of its own: those after it see all that was committed before the lock was given to us. */
async function lockHead(client: Client): Promise<number> {
  const text = 'BEGIN ISOLATION LEVEL READ COMMITTED; SELECT position FROM head FOR UPDATE'
  const [, { rows }] = (await client.query(text)) as unknown as [QueryResult, QueryResult]
  return rows[0].position
}

/** The note is written in every batch: so a COMMIT always waits until all that it saw is on the standbys, too. */
function commit(writer: string, batch: number): QueryConfig {
  const text = `
    INSERT INTO writers VALUES ('${writer}', ${batch}, ${Date.now()})
    ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, seen_at = excluded.seen_at;
    COMMIT`
  return { text }
}

/** The items that are in the log under these ids. */
async function findItems(client: Client, ids: number[]): Promise<Map<number, string>> {
  if (ids.length === 0) return new Map()
  const text = 'SELECT id, item FROM plants WHERE id = ANY($1) AND id IS NOT NULL'
  const query: QueryArrayConfig = { name: 'known', text, values: [ids], rowMode: 'array' }
  return new Map((await client.query<[number, string]>(query)).rows)
}

/** Outcomes in the order of the entries; `known` takes in the ids that are added. */
function judge(entries: Entry[], known: Map<number, string>): { outcomes: Outcome[]; added: Entry[] } {
  const added: Entry[] = []
  const outcomes = entries.map((entry): Outcome => {
    const item = entry.id === undefined ? undefined : known.get(entry.id)
    if (item !== undefined) return item === entry.item ? 'replayed' : 'conflict'
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
    INSERT INTO plants (position, id, item) SELECT $1::bigint + n, id, item
    FROM unnest($2::bigint[], $3::text[]) WITH ORDINALITY AS added (id, item, n)`
  const columns = [entries.map(({ id }) => id), entries.map(({ item }) => item)]
  return { name: 'insert', text, values: [position, ...columns, position + entries.length] }
}

/** The problem of a request that the store could not serve; `cause` is for the operator. */
export function unavailable(detail: string, cause: unknown): ProblemError {
  return new ProblemError('unavailable', detail, { headers: { 'Retry-After': '1' }, cause })
}
