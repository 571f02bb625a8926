// A PostgreSQL database in a read-only session. A URL may name a standby alone, so that an export does not burden the
// primary.
import pg from 'pg'
import { attemptMs } from '../../limits.ts'
import type { EngineStatus } from '../engine-status.ts'
import { StoreRefused, StoreUnavailable, type Value } from '../store.ts'
import type { Joined, Range, StoreView } from '../view.ts'
import { explain, mostTelling, nameServer, ServerFailure } from './failures.ts'
import { splitHosts } from './hosts.ts'
import { refuseSharedSessions } from './pooler.ts'
import { postgresDialect } from './postgres-dialect.ts'
import { findStore } from './postgres-schema.ts'
import { readPostgresStatus } from './postgres-status.ts'
import { types } from './session.ts'

/** Everything is read by an index, in its order; the planner would sort a table that was just filled. */
const settings = `
  SET default_transaction_read_only = on; SET statement_timeout = 0; SET jit = off;
  SET enable_seqscan = off; SET enable_bitmapscan = off`

/** Opens a view. Rejects with StoreRefused. */
export async function openPostgresView(url: string): Promise<StoreView> {
  const client = await connectToAny(splitHosts(url))
  try {
    return new PostgresView(client, await readVersion(client))
  } catch (error) {
    await client.end()
    throw refusal(new ServerFailure(nameServer(client), error as Error))
  }
}

/** Connects to the server that accepts writes, or else to any that answers. */
async function connectToAny(urls: string[]): Promise<pg.Client> {
  const attempts = await Promise.allSettled(urls.map(connect))
  const sessions = attempts.flatMap((attempt) => (attempt.status === 'fulfilled' ? attempt.value : []))
  const [chosen, ...others] = sessions.toSorted((a, b) => Number(a.isStandby) - Number(b.isStandby))
  await Promise.all(others.map(({ client }) => client.end()))
  if (chosen) return chosen.client
  throw refusal(mostTelling(attempts.map((attempt) => (attempt as PromiseRejectedResult).reason)))
}

async function connect(url: string): Promise<{ client: pg.Client; isStandby: boolean }> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'plant-store',
    keepAlive: true,
    connectionTimeoutMillis: attemptMs,
    types,
  })
  // Errors between queries are ignored here; the next query fails.
  client.on('error', () => {})
  try {
    await client.connect()
    await refuseSharedSessions(client, url)
    await client.query(settings)
    const { rows } = await client.query('SELECT pg_is_in_recovery() AS standby')
    return { client, isStandby: rows[0].standby }
  } catch (error) {
    // Destroyed, as a server that waits for a password would keep the connection for a minute.
    client.connection.stream.destroy()
    throw new ServerFailure(nameServer(client), error as Error)
  }
}

async function readVersion(client: pg.Client): Promise<number> {
  const found = await findStore(client)
  if (found) return found.version
  throw new StoreRefused('it holds no plant store')
}

function refusal(error: Error): StoreRefused {
  return new StoreRefused(`cannot use the database of DATABASE_URL: ${error.message}`, { cause: error })
}

class PostgresView implements StoreView {
  readonly dialect = postgresDialect
  readonly version: number
  readonly #client: pg.Client

  constructor(client: pg.Client, version: number) {
    this.#client = client
    this.version = version
  }

  async select<R extends Value[]>(text: string, values: Value[] = []): Promise<R[]> {
    try {
      return (await this.#client.query<R>({ text, values, rowMode: 'array' })).rows
    } catch (cause) {
      throw new StoreUnavailable('unread', explain(cause as Error), { cause })
    }
  }

  async join(expressions: string[], { after, last }: Range, separator: string): Promise<Joined> {
    const texts = expressions.map((expression) => `string_agg(${expression}, $3 ORDER BY position)`)
    const text = `SELECT count(*), ${texts} FROM plants WHERE position > $1 AND position <= $2`
    const [row] = await this.select(text, [after, last, separator])
    const [count, ...joined] = row as unknown as [number, ...(string | null)[]]
    return { count, texts: joined.map((part) => Buffer.from(part ?? '')) }
  }

  async readStatus(): Promise<EngineStatus> {
    return readPostgresStatus(this)
  }

  async close(): Promise<void> {
    await this.#client.end()
  }
}
