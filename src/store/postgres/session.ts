// A session with one server: what it is made to promise, what history its log has, and the barrier before it is believed.
import pg from 'pg'
import { attemptMs, idleInTransactionMs, lockMs, vanishedMs } from '../../limits.ts'
import { CopiedRows } from './copied-rows.ts'
import { nameServer } from './failures.ts'
import { refuseSharedSessions } from './pooler.ts'

/** The history that a server writes. `name` also tells its restarts and its databases apart. */
export type Origin = { readonly name: string; readonly system: string; readonly timeline: number }

export class Session {
  /** As `nameServer` gives it. */
  readonly server: string
  readonly #url: string
  readonly #client: pg.Client
  readonly #keepsTime: boolean
  #origin: Origin | undefined
  #warning: string | undefined
  #firstError: unknown
  #destroyed = false

  /** `name`: for pg_stat_activity, unless the URL has another. `keepsTime`: the server ends statements that take too long; never for one that writes. */
  constructor(url: string, name: string, keepsTime: boolean) {
    this.#url = url
    this.#client = new pg.Client({
      connectionString: url,
      application_name: name,
      pipeline: true,
      keepAlive: true,
      types,
    })
    this.server = nameServer(this.#client)
    this.#keepsTime = keepsTime
    // Between queries nobody waits for an answer; the next query meets the fault.
    this.#client.on('error', () => {})
    // The session asks for warnings only, so whatever comes is one; their names are in the server's language.
    this.#client.on('notice', ({ message }) => {
      this.#warning = String(message)
    })
  }

  /** Connects. Rejects when the server takes no writes. */
  async open(): Promise<void> {
    await this.#client.connect()
    await refuseSharedSessions(this.#client, this.#url)
    const { rows } = await this.#client.query(prepareSession, [this.#keepsTime ? `${attemptMs}` : '0'])
    const { read_only, system, timeline, place } = rows[0]
    if (timeline === null) throw new Error('it is a standby, and takes no writes')
    if (read_only === 'on') throw new Error('it takes no writes: default_transaction_read_only is on there')
    this.#origin = {
      name: `${system}/${timeline}/${place}`,
      system,
      timeline: Number.parseInt(timeline, 16),
    }
  }

  /** The one of the moment when the session was opened: it cannot outlive a change. */
  get origin(): Origin {
    return this.#origin as Origin
  }

  get destroyed(): boolean {
    return this.#destroyed
  }

  /** Queries that are sent without waiting for one another share a flight. */
  // biome-ignore lint/suspicious/noExplicitAny: rows are as the query says.
  async query<R extends pg.QueryResultRow = any>(query: pg.QueryConfig | string): Promise<pg.QueryResult<R>> {
    return this.#client.query<R>(query).catch(this.#fail)
  }

  /** Those sent behind a statement that failed in their transaction fail, too (25P02): the first error says why. */
  #fail = (error: Error & { code?: string }): never => {
    if (error.code !== '25P02') this.#firstError = error
    throw this.#firstError
  }

  /** The rows of a SELECT without parameters, their fields as bytes; see `CopiedRows`. */
  copy(select: string): Promise<Buffer[][]> {
    return new Promise((resolve, reject) => {
      const query = new CopiedRows(select, (error) => (error ? reject(error) : resolve(query.copied)))
      this.#client.query(query)
    })
  }

  /**
   * Sends queries, the last of which commits. Rejects when the server warned of anything: a COMMIT whose wait for the
   * standbys was cancelled is a success with a warning, and may be lost yet.
   */
  async commit(queries: pg.QueryConfig[]): Promise<void> {
    this.#warning = undefined
    await Promise.all(queries.map((query) => this.query(query)))
    if (this.#warning !== undefined) throw new Error(`a commit came with a warning: ${this.#warning}`)
  }

  /**
   * Commits a message in the write-ahead log. When that is on the standbys, so is everything before it: what a primary
   * shows after a restart may be on no standby, and a primary without its standbys never gets here.
   */
  async passBarrier(): Promise<void> {
    await this.commit([{ text: "SELECT pg_logical_emit_message(true, 'plant-store', 'barrier')" }])
  }

  destroy(): void {
    this.#destroyed = true
    this.#client.connection.stream.destroy()
  }
}

/** Milliseconds of the database's clock: those of the replicas may differ by days. */
export const databaseMs = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

/**
 * The session's settings, whatever the role, the database or the server has. A commit waits for stable storage here and
 * on the standbys (remote_apply waits for even more). A client that vanished holds no lock for long. Plans are kept, and
 * suit a log of any length, however fast it has grown since: all there is goes by an index, in its order.
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
 * The timeline is that of what is written now; pg_control_checkpoint() tells of it a checkpoint too late. Settings that a
 * server is too old for are left out.
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

/** 64-bit integers as numbers: ours are within ±(2^53−1). */
export const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format: 'text') =>
    oid === pg.types.builtins.INT8
      ? Number
      : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
}
