// A session with one server: its settings, the origin of its log, and the conditions for trusting it.
import type { Socket } from 'node:net'
import { addAbortSignal } from 'node:stream'
import pg from 'pg'
import { StoreRefused } from '../errors.ts'
import { standbyError } from './failures.ts'
import { readUrl } from './hosts.ts'
import { attemptMs, idleInTransactionMs, lockMs, vanishedMs } from './time-outs.ts'

/**
 * SQL for the reason why the server may no longer be the primary: it requires synchronous standbys, and none streams
 * from it. NULL otherwise. A role without pg_monitor sees each stream, but not whether the standby is synchronous.
 */
export const findDoubt = `
  CASE WHEN current_setting('synchronous_standby_names') <> '' AND NOT EXISTS (
    SELECT FROM pg_stat_get_wal_senders() WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum'))
  THEN 'it may no longer be the primary: no standby of synchronous_standby_names is streaming' END`

/**
 * A read trusts the last barrier for this time. A frozen or isolated primary reports its standbys as streaming long
 * after they have switched to another primary.
 */
export const leaseMs = 1000

/**
 * Returns a function that runs `check` unless a successful check began at most `leaseMs` before `startMs`, or later.
 * Concurrent callers share a check, whenever it began, and wait for it only if the last successful check began more than
 * `patienceMs` before. If `patienceMs` exceeds `leaseMs`, `check` must not reject.
 */
export function makeLease(check: () => Promise<unknown>, patienceMs = leaseMs) {
  let provenMs = -Infinity
  let checking: Promise<unknown> | undefined
  return async (startMs = performance.now()): Promise<void> => {
    const ageMs = startMs - provenMs
    if (ageMs <= leaseMs) return
    const beganMs = performance.now()
    checking ??= check()
      .then(() => (provenMs = beganMs))
      .finally(() => (checking = undefined))
    if (ageMs > patienceMs) await checking
  }
}

/** A connection to one server, with the settings that make its commits durable. */
export class Session {
  /** host:port/database, for messages; without the database if neither the URL nor its user names one. */
  readonly server: string
  readonly #options: pg.ClientConfig
  readonly #client: pg.Client
  /** The timeline of its log; null for a standby, undefined before the session is open. */
  timeline: string | null | undefined
  /** Identifies the cluster. */
  system = ''
  /** Identifies the timeline, the cluster, the database, and the last start of the server. */
  origin = ''
  #warning: string | undefined
  /** The error to throw from now on. */
  #failure: unknown

  /** `closing` ends the session in any state. */
  constructor(url: string, closing: AbortSignal) {
    this.#options = readUrl(url)
    this.#client = new pg.Client({
      ...this.#options,
      application_name: 'plant-store',
      pipeline: true,
      keepAlive: true,
      keepAliveInitialDelayMillis: vanishedMs,
    })
    addAbortSignal(closing, this.#client.connection.stream)
    guardParser(this.#client)
    const { host, port, database } = this.#client
    this.server = [`${host}:${port}`, database].filter(Boolean).join('/')
    // 64-bit integers become numbers: ours are within ±(2^53−1).
    this.#client.setTypeParser(pg.types.builtins.INT8, Number)
    // An error between queries is reported by the next query.
    this.#client.on('error', (error) => (this.#failure ??= error))
    // `client_min_messages` allows only warnings, so the severity, which is localized, is not checked. Warnings from
    // the source file varsup.c are about transaction ID wraparound.
    this.#client.on('notice', ({ message, file }) => {
      if (file !== 'varsup.c') this.#warning = String(message)
    })
  }

  /**
   * Connects, to write unless `isReading`. To write, the server must be a primary with its standbys. `timeoutMs`: the
   * server cancels statements that take longer; 0: no limit.
   */
  async open(isReading: boolean, timeoutMs: number): Promise<void> {
    await this.#client.connect()
    await refuseSharedSessions(this.#client, this.#options)
    // A setting of its own, because it must apply to the query that sets the others.
    const isolated = this.query("SET default_transaction_isolation = 'read committed'")
    const [{ read_only, doubt }] = await Promise.all([this.identify(timeoutMs), isolated])
    if (isReading) await this.query('SET default_transaction_read_only = on; SET lock_timeout = 0')
    else if (this.timeline === null) throw standbyError()
    else if (read_only === 'on') throw new Error('default_transaction_read_only is on')
    else if (doubt !== null) throw new Error(doubt)
  }

  /** True from the first byte of the server (even of the TLS handshake) until the session is open or has ended. */
  get isAnswering(): boolean {
    const { bytesRead, destroyed } = this.#client.connection.stream as Socket
    return this.timeline === undefined && bytesRead > 0 && !destroyed
  }

  /** Applies the settings, and reads the origin, which changes if a standby is promoted. */
  async identify(timeoutMs: number): Promise<Row> {
    const row = (await this.query<Row>({ text: prepareSession, values: [`${timeoutMs}`] })).rows[0] as Row
    this.timeline = row.timeline
    this.system = row.system
    this.origin = `${row.timeline}/${row.system}/${row.place}`
    return row
  }

  /** Sends a query. Queries sent without awaiting one another are pipelined. */
  async query<R extends pg.QueryResultRow = Record<string, unknown>>(query: pg.QueryConfig | string) {
    return this.#client.query<R>(query).catch(this.#fail)
  }

  /**
   * Throws the latest error of the server, or the first of the connection. Not 25P02, which only says that an earlier
   * statement has failed, nor the loss of the connection after an error.
   */
  #fail = (error: Error & { code?: string }): never => {
    if (error instanceof pg.DatabaseError && error.code !== '25P02') this.#failure = error
    this.#failure ??= error
    throw this.#failure
  }

  /**
   * Sends a statement that commits. Rejects on a warning: if the wait for the standbys is cancelled, a COMMIT succeeds
   * with a warning, and may still be lost. Resolves to false if the server rolled back instead.
   */
  async commit(statement: string): Promise<boolean> {
    this.#warning = undefined
    if ((await this.query(statement)).command === 'ROLLBACK') return false
    if (this.#warning !== undefined) throw new Error(`the server committed with a warning: ${this.#warning}`)
    return true
  }

  /**
   * Passes a barrier if none has begun in the last `leaseMs`: commits a message in the write-ahead log. Once the
   * message is on the standbys, so is everything before it, such as plants that no standby had when the primary
   * restarted. Does not complete while the standbys do not respond.
   */
  readonly passBarrier = makeLease(() => this.commit(barrier))

  destroy(): void {
    this.#client.connection.stream.destroy()
  }
}

/**
 * The session's settings, which override those of the role, the database and the server. The locks of a vanished client
 * are released soon. Query plans are cached, and remain efficient for a log of any length, because every query uses an
 * index in its order. Row-level security, which would hide plants, causes an error instead.
 */
const settings = `
  ('array_nulls', 'on'), ('client_min_messages', 'warning'), ('transaction_timeout', '0'),
  ('idle_session_timeout', '0'), ('lock_timeout', '${lockMs}'), ('tcp_user_timeout', '${vanishedMs}'),
  ('idle_in_transaction_session_timeout', '${idleInTransactionMs}'), ('tcp_keepalives_idle', '1'),
  ('tcp_keepalives_interval', '1'), ('tcp_keepalives_count', '${Math.max(1, Math.floor(vanishedMs / 1000) - 1)}'),
  ('enable_indexscan', 'on'), ('enable_indexonlyscan', 'on'), ('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'),
  ('jit', 'off'), ('row_security', 'off'), ('plan_cache_mode', 'force_generic_plan')`

type Row = { read_only: string; doubt: string | null; timeline: string | null; system: string; place: string }

const barrier = "SELECT pg_logical_emit_message(true, 'plant-store', 'barrier')"

/** Ends abandoned barriers: no time-out ends a wait for standbys. Ends no batch, whose plants would become visible. */
export const endBarriers = `
  SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
  WHERE usename = current_user AND wait_event = 'SyncRep' AND query = $query$${barrier}$query$
    AND clock_timestamp() - query_start > interval '${attemptMs} ms'`

/**
 * Applies the settings that the server supports, and reads the origin. A commit waits for stable storage on the primary
 * and the standbys; a stricter remote_apply is kept. The timeline is from the current WAL file: pg_control_checkpoint()
 * reports a new timeline only after a checkpoint.
 */
const prepareSession = `
  SELECT current_setting('transaction_read_only') AS read_only, ${findDoubt} AS doubt,
    CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline,
    (SELECT system_identifier::text FROM pg_control_system()) AS system,
    (SELECT oid FROM pg_database WHERE datname = current_database()) || '/' ||
      (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint AS place,
    (SELECT count(set_config(name, value, false)) FROM (VALUES ${settings}) AS setting (name, value)
      WHERE current_setting(name, true) IS NOT NULL),
    set_config('statement_timeout', $1, false),
    set_config('synchronous_commit',
      CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)`

/** The order of the queries. It is irregular, to detect a pooler that alternates between sessions. */
const askedClients = [0, 1, 1, 0, 0, 1, 0]

/**
 * Throws StoreRefused if the server sessions behind `client` change: with transaction pooling, as in PgBouncer, our
 * session settings would be lost, or apply to other applications. A second connection, with `options`, is needed only
 * if the process ID sent at the start is not the server's, as with a pooler.
 */
async function refuseSharedSessions(client: pg.Client, options: pg.ClientConfig): Promise<void> {
  const { processID } = client as unknown as { processID: number }
  if ((await findBackend(client)) === processID) return
  const other = new pg.Client({ ...options, connectionTimeoutMillis: attemptMs, query_timeout: attemptMs })
  other.on('error', () => {})
  guardParser(other)
  try {
    await other.connect()
    const backends: number[] = []
    for (const n of askedClients) backends.push(await findBackend(n === 0 ? client : other))
    const [first, second] = backends
    if (first !== second && askedClients.every((n, at) => backends[at] === (n === 0 ? first : second))) return
  } finally {
    other.connection.stream.destroy()
  }
  throw new StoreRefused('the pooler uses transaction pooling: set its pool_mode to session, or bypass it')
}

/** In a transaction of its own level: a role may have another default, which a standby refuses. */
async function findBackend(client: pg.Client): Promise<number> {
  const text = 'BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_backend_pid() AS pid; COMMIT'
  const [, found] = (await client.query(text)) as unknown as pg.QueryResult<{ pid: number }>[]
  return Number(found?.rows[0]?.pid)
}

/**
 * Ends a connection if pg cannot parse a message, such as a request for GSSAPI. pg has no option for this: it parses in a
 * listener, where an error would end the process. Call it before the client connects.
 */
function guardParser({ connection }: pg.Client): void {
  const guard = () => {
    const { stream } = connection
    for (const parse of stream.rawListeners('data'))
      stream.off('data', parse as () => void).on('data', (bytes) => {
        try {
          parse(bytes)
        } catch (error) {
          stream.destroy(error as Error)
        }
      })
  }
  // pg attaches its parser before it emits these events.
  connection.on('connect', guard).on('sslconnect', guard)
}
