// Detects connection poolers that share sessions between transactions.
import pg from 'pg'
import { attemptMs } from '../../limits.ts'
import { StoreRefused } from '../errors.ts'

/** The order of the questions: irregular, so that even a pooler that alternates between sessions is detected. */
const order = [0, 1, 1, 0, 0, 1, 0]

/**
 * Throws StoreRefused when the sessions behind `client`, which is connected to `url`, change: a transaction-level
 * pooler, such as PgBouncer, would lose the settings of our sessions, and leave them to other applications. A second
 * connection is made only if the process id sent at the start is not the server's, as with a pooler.
 */
export async function refuseSharedSessions(client: pg.Client, url: string): Promise<void> {
  const { processID } = client as unknown as { processID: number }
  if ((await findBackend(client)) === processID) return
  /* c8 ignore start: tested where PgBouncer is installed */
  const limits = { connectionTimeoutMillis: attemptMs, query_timeout: attemptMs }
  const other = new pg.Client({ connectionString: url, ...limits })
  other.on('error', () => {})
  try {
    await other.connect()
    const backends: number[] = []
    for (const n of order) backends.push(await findBackend(n === 0 ? client : other))
    const [first, second] = backends
    if (first !== second && order.every((n, at) => backends[at] === backends[n])) return
  } finally {
    other.connection.stream.destroy()
  }
  throw new StoreRefused(
    'the connection pooler there shares sessions between transactions: set its pool_mode to session, or name the PostgreSQL server itself',
  )
  /* c8 ignore stop */
}

async function findBackend(client: pg.Client): Promise<number> {
  return Number((await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid)
}
