// A session with one server: its settings, the origin of its log, and the barrier before it is trusted.
import { addAbortSignal } from 'node:stream'
import pg from 'pg'
import { attemptMs, idleInTransactionMs, lockMs, vanishedMs } from '../../limits.ts'
import { StoreRefused } from '../store.ts'
import { CopiedRows } from './copied-rows.ts'

/**
 * The history that a server writes. `name` also distinguishes its restarts and its databases; `timeline` has a fixed
 * number of digits.
 */
export type Origin = { readonly name: string; readonly system: string; readonly timeline: string }

type Query = pg.QueryConfig & { rowMode?: 'array' }

export class Session {
  /** host:port/database, for messages; without the database when neither the URL nor a user names one. */
  readonly server: string
  readonly #url: string
  readonly #client: pg.Client
  /** The origin when the session was opened; a session does not survive a change of it. */
  origin!: Origin
  #warning: string | undefined
  #firstError: unknown

  /** `name`: for pg_stat_activity, unless the URL has one. `closing` ends the session in any state. */
  constructor(url: string, name: string, closing?: AbortSignal) {
    this.#url = url
    const options = { application_name: name, pipeline: true, keepAlive: true }
    this.#client = new pg.Client({ connectionString: url, ...options })
    if (closing) addAbortSignal(closing, this.#client.connection.stream)
    const { host, port, database } = this.#client
    this.server = [`${host}:${port}`, database].filter(Boolean).join('/')
    // 64-bit integers become numbers: ours are within ±(2^53−1).
    this.#client.setTypeParser(pg.types.builtins.INT8, Number)
    // Errors between queries are ignored here; the next query fails.
    this.#client.on('error', () => {})
    // The session asks for warnings only. Their severity is in the server's language, and not needed.
    this.#client.on('notice', ({ message }) => {
      this.#warning = String(message)
    })
  }

  async connect(): Promise<void> {
    await this.#client.connect()
    await refuseSharedSessions(this.#client, this.#url)
  }

  /**
   * Connects, to write or to read what was written. Rejects when the server accepts no writes. `timeoutMs`: the server
   * ends statements that take longer; 0: it ends none.
   */
  async open(timeoutMs: number): Promise<void> {
    await this.connect()
    const { rows } = await this.#client.query(prepareSession, [`${timeoutMs}`])
    const { read_only, system, timeline, place } = rows[0]
    if (timeline === null) throw new Error('it is a standby, and accepts no writes')
    if (read_only === 'on') throw new Error('it accepts no writes: default_transaction_read_only is on there')
    this.origin = { name: `${system}/${timeline}/${place}`, system, timeline }
  }

  /** Sends a query. Queries sent without awaiting one another are pipelined. */
  // biome-ignore lint/suspicious/noExplicitAny: rows are as the query says.
  async query<R extends pg.QueryResultRow = any>(query: Query | string): Promise<pg.QueryResult<R>> {
    return this.#client.query<R>(query).catch(this.#fail)
  }

  /** Keeps the first error: pipelined statements behind it in the transaction fail with 25P02. */
  #fail = (error: Error & { code?: string }): never => {
    if (error.code !== '25P02') this.#firstError = error
    throw this.#firstError
  }

  /** Reads the rows of a SELECT without parameters, their fields as bytes; see `CopiedRows`. */
  copy(select: string): Promise<Buffer[][]> {
    return new Promise((resolve, reject) => {
      const query = new CopiedRows(select, (error) => (error ? reject(error) : resolve(query.copied)))
      this.#client.query(query)
    })
  }

  /**
   * Sends queries, the last of which commits. Rejects on any warning: a COMMIT whose wait for the standbys was
   * cancelled succeeds with a warning, and may still be lost.
   */
  async commit(queries: pg.QueryConfig[]): Promise<void> {
    this.#warning = undefined
    await Promise.all(queries.map((query) => this.query(query)))
    if (this.#warning !== undefined) throw new Error(`a commit came with a warning: ${this.#warning}`)
  }

  /**
   * Commits a message in the write-ahead log. Once that is on the standbys, so is everything before it: after a restart
   * a primary may show plants that are on no standby. Without its standbys a primary never completes this.
   */
  async passBarrier(): Promise<void> {
    await this.commit([{ text: "SELECT pg_logical_emit_message(true, 'plant-store', 'barrier')" }])
  }

  destroy(): void {
    this.#client.connection.stream.destroy()
  }
}

/** Milliseconds since 1970 by the database's clock, as the clocks of replicas may differ by days. */
export const databaseMs = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/**
 * The session's settings, which override those of the role, the database and the server. A commit waits for stable
 * storage here and on the standbys (remote_apply waits for even more). A client that vanished holds no lock for long.
 * Plans are kept, and suit a log of any length, as everything goes by an index, in its order.
 */
const settings = {
  array_nulls: 'on',
  client_min_messages: 'warning',
  default_transaction_isolation: 'read committed',
  transaction_timeout: '0',
  lock_timeout: String(lockMs),
  idle_in_transaction_session_timeout: String(idleInTransactionMs),
  idle_session_timeout: '0',
  tcp_user_timeout: String(vanishedMs),
  tcp_keepalives_idle: '1',
  tcp_keepalives_interval: '1',
  tcp_keepalives_count: String(Math.max(1, Math.floor(vanishedMs / 1000) - 1)),
  enable_indexscan: 'on',
  enable_indexonlyscan: 'on',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  jit: 'off',
}

/**
 * Applies the settings that the server knows, and reads the origin. The timeline is the current one;
 * pg_control_checkpoint() would report it a checkpoint late.
 */
const prepareSession = `
  SELECT current_setting('transaction_read_only') AS read_only,
    (SELECT system_identifier::text FROM pg_control_system()) AS system,
    CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline,
    (SELECT oid FROM pg_database WHERE datname = current_database()) || '/' ||
      (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint AS place,
    (SELECT count(set_config(name, value, false)) FROM (VALUES
      ${Object.entries(settings).map(([name, value]) => `('${name}', '${value}')`)}) AS setting (name, value)
      WHERE current_setting(name, true) IS NOT NULL),
    set_config('statement_timeout', $1, false),
    set_config('synchronous_commit',
      CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)`

/** The order of the questions: irregular, so that even a pooler that alternates between sessions is detected. */
const order = [0, 1, 1, 0, 0, 1, 0]

/**
 * Throws StoreRefused when the sessions behind `client`, which is connected to `url`, change: a transaction-level
 * pooler, such as PgBouncer, would lose the settings of our sessions, and leave them to other applications. A second
 * connection is made only if the process id sent at the start is not the server's, as with a pooler.
 */
async function refuseSharedSessions(client: pg.Client, url: string): Promise<void> {
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
  return (await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid
}
