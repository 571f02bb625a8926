// A PostgreSQL cluster for tests: a primary and its standbys. The test manages fail-overs: it promotes a standby, makes the
// others follow it, and replaces lost servers.

import pg from 'pg'
import type { Test } from 'tap'
import { findPorts, PostgresServer } from '../support/postgres.ts'
import { until } from '../support/until.ts'

export type ClusterOptions = { standbys: number; synchronous: boolean }

export class Cluster {
  primary: PostgresServer
  standbys: PostgresServer[] = []
  readonly ports: number[]
  readonly #servers: PostgresServer[]

  /** `ports`: of all servers, beginning with the primary. */
  constructor(ports: number[], synchronous: boolean) {
    this.ports = ports
    const settings = [
      'max_connections = 50',
      'shared_buffers = 32MB',
      'wal_keep_size = 512MB',
      'wal_retrieve_retry_interval = 100ms',
      "include_if_exists = 'primary.conf'",
      ...(synchronous ? ["synchronous_standby_names = 'ANY 1 (*)'"] : []),
    ]
    this.#servers = ports.map((port) => new PostgresServer({ port, settings }))
    this.primary = this.#servers[0] as PostgresServer
  }

  /** The URL with all servers. */
  url(database = 'postgres'): string {
    return `postgres://postgres@${this.ports.map((port) => `127.0.0.1:${port}`).join()}/${database}`
  }

  async start(): Promise<void> {
    await this.primary.init()
    await this.primary.start()
    for (const server of this.#servers.slice(1)) await this.#join(server)
    await this.streaming()
  }

  /**
   * Promotes the standby that has received the most, which has all acknowledged plants. The old primary does not return
   * to the cluster, since it may have written what the new primary lacks.
   */
  async failOver(): Promise<void> {
    for (const standby of this.standbys) this.#follow(standby, undefined)
    for (const standby of this.standbys) await until(async () => !(await isReceiving(standby)))
    const received = new Map<PostgresServer, bigint>()
    for (const standby of this.standbys) received.set(standby, await receivedPosition(standby))
    const [next, ...others] = this.standbys.sort((a, b) =>
      (received.get(a) as bigint) < (received.get(b) as bigint) ? 1 : -1,
    ) as [PostgresServer, ...PostgresServer[]]
    await next.promote()
    this.primary = next
    this.standbys = others
    for (const standby of others) this.#follow(standby, next)
  }

  /** Replaces each lost server by a new standby. */
  async rebuild(): Promise<void> {
    for (const server of this.#servers)
      if (server !== this.primary && !this.standbys.includes(server)) {
        server.kill()
        await this.#join(server)
      }
    await this.streaming()
  }

  /** Resolves when all standbys receive what the primary writes. */
  async streaming(): Promise<void> {
    const text = "SELECT pid FROM pg_stat_replication WHERE state = 'streaming'"
    await until(async () => (await this.primary.query(text)).length === this.standbys.length)
  }

  /** Resolves when the standbys have received all that the primary has written so far. */
  async caughtUp(): Promise<void> {
    const goal = await readPosition(this.primary, 'pg_current_wal_lsn()')
    const received = () => Promise.all(this.standbys.map(receivedPosition))
    await until(async () => (await received()).every((position) => position >= goal))
  }

  /** Resolves to the process id of a session that waits for the standbys, other than `others`. */
  async waitingSession(others: number[] = []): Promise<number> {
    const text = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' ORDER BY query_start"
    let found: number | undefined
    await until(async () => {
      const rows = await this.primary.query<{ pid: number }>(text)
      found = rows.find(({ pid }) => !others.includes(pid))?.pid
      return found !== undefined
    })
    return Number(found)
  }

  destroy(): void {
    for (const server of this.#servers) server.destroy()
  }

  #follow(standby: PostgresServer, primary: PostgresServer | undefined): void {
    const conninfo = primary ? `host=127.0.0.1 port=${primary.port} user=postgres` : ''
    standby.write('primary.conf', `primary_conninfo = '${conninfo}'\n`)
    standby.signal('SIGHUP')
  }

  /** A standby is a copy of the running primary: postgresql.org/docs/18/continuous-archiving.html, low-level API. */
  async #join(server: PostgresServer): Promise<void> {
    const client = new pg.Client({ connectionString: this.primary.url() })
    await client.connect()
    await client.query("SELECT pg_backup_start('standby', true)")
    await server.copyFiles(this.primary)
    const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(false)')
    await client.end()
    server.write('backup_label', rows[0].labelfile)
    server.write('standby.signal', '')
    this.#follow(server, this.primary)
    await server.start()
    this.standbys.push(server)
  }
}

/** Starts a cluster, which is removed when the test ends. */
export async function startCluster(t: Test, { standbys, synchronous }: ClusterOptions): Promise<Cluster> {
  const cluster = new Cluster(await findPorts(1 + standbys), synchronous)
  t.teardown(() => cluster.destroy())
  await cluster.start()
  return cluster
}

async function isReceiving(standby: PostgresServer): Promise<boolean> {
  return (await standby.query('SELECT 1 FROM pg_stat_wal_receiver')).length > 0
}

/** The position up to which a standby has the write-ahead log on stable storage. */
function receivedPosition(standby: PostgresServer): Promise<bigint> {
  return readPosition(standby, 'pg_last_wal_receive_lsn()')
}

/** The position in the write-ahead log that an SQL function returns, in bytes. */
async function readPosition(server: PostgresServer, call: string): Promise<bigint> {
  const text = `SELECT pg_wal_lsn_diff(${call}, '0/0')::text AS bytes`
  const [row] = await server.query<{ bytes: string }>(text)
  return BigInt(row?.bytes ?? 0)
}
