// Detects connection poolers that share sessions between transactions.
import pg from 'pg'
import { StoreRefused } from '../errors.ts'
import { attemptMs } from './time-outs.ts'

/** The order of the questions: irregular, so that even a pooler that alternates between sessions is detected. */
const order = [0, 1, 1, 0, 0, 1, 0]

/**
 * Throws StoreRefused if the sessions behind `client` change: a transaction-level pooler, such as PgBouncer, would lose
 * the settings of our sessions, and leave them to other applications. A second connection, made with `options`, is needed
 * only if the process id sent at the start is not the server's, as with a pooler.
 */
export async function refuseSharedSessions(client: pg.Client, options: pg.ClientConfig): Promise<void> {
  const { processID } = client as unknown as { processID: number }
  if ((await findBackend(client)) === processID) return
  const limits = { connectionTimeoutMillis: attemptMs, query_timeout: attemptMs }
  const other = new pg.Client({ ...options, ...limits })
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
}

async function findBackend(client: pg.Client): Promise<number> {
  return Number((await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid)
}
