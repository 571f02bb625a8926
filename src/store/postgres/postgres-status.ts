// The status of a PostgreSQL cluster. Only the state of the standbys needs a role, pg_monitor.
import type { Positions } from '../engine.ts'
import type { Select } from '../sql/sql.ts'
import type { ClusterStatus, EngineStatus, Loss, ServiceStatus, Standby } from '../status.ts'
import { tables } from './postgres-schema.ts'

/** The name of a service's sessions; the random id of the thread follows it. */
export const serviceName = 'plant-store serve'

const server = `
  SELECT current_setting('server_version') AS version,
    coalesce(host(inet_server_addr()), 'localhost') || ':' || current_setting('port') AS server,
    CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END AS role,
    (SELECT sum(pg_total_relation_size(to_regclass(name)))::bigint FROM unnest($1::text[]) AS name) AS bytes,
    (SELECT value FROM meta WHERE key = $2) AS loss`

type Server = {
  version: string
  server: string
  role: ClusterStatus['role']
  bytes: number
  loss: string | null
}

export async function readPostgresStatus(select: Select): Promise<EngineStatus> {
  const [row] = await select(server, [`{${tables}}`, lossKey])
  const { version: engineVersion, server: address, role, bytes, loss: noted } = row as Server
  const unsafe = (await select(findUnsafe)).map(({ name }) => String(name))
  const found = (await select(standbys)) as unknown[] as Standby[]
  const loss: Loss | null = noted === null ? null : JSON.parse(noted)
  const cluster = { server: address, role, standbys: found, unsafe, loss }
  return { engineVersion, bytes, cluster, service: await findService(select, role) }
}

/** Query for the standbys. */
const standbys = `
  SELECT application_name AS name, host(client_addr) AS address, state, sync_state AS sync,
    CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint END
      AS "lagBytes",
    extract(epoch FROM replay_lag)::float8 AS "lagSeconds"
  FROM pg_stat_replication ORDER BY application_name, pid`

/** Query for services: the sessions of each thread share a name. */
const threads = `
  SELECT coalesce(host(client_addr), 'localhost') AS host, count(DISTINCT application_name) AS threads
  FROM pg_stat_activity
  WHERE datname = current_database() AND application_name LIKE $1 || ' %' GROUP BY 1 ORDER BY 1`

/** Finds running services; unknown on a standby, as services use the primary. */
async function findService(select: Select, role: ClusterStatus['role']): Promise<ServiceStatus> {
  const clients = await select(threads, [serviceName])
  const isUnknown = clients.length === 0 && role === 'standby'
  const by = clients.map(({ host, threads: n }) => `serve (${host}${Number(n) > 1 ? `, ${n} threads` : ''})`)
  return { running: isUnknown ? null : clients.length > 0, by }
}

/** Consequences of settings of a server that are off. Our own sessions raise `synchronous_commit` (see session.ts). */
const consequences = {
  fsync: 'when its machine fails, plants that were acknowledged can be lost, or the database damaged',
  full_page_writes: 'when its machine fails, the database can be damaged',
  synchronous_commit: 'this service turns it on for itself; what others commit there can be lost',
}

/** Query for settings that are off on the server, whatever the session has set. */
export const findUnsafe = `
  SELECT name FROM pg_settings
  WHERE name IN (${Object.keys(consequences).map((name) => `'${name}'`)}) AND reset_val = 'off' ORDER BY name`

/** Key of the row of `meta` with the latest loss, as JSON. */
export const lossKey = 'loss'

/** Describes a loss for operators. */
export function describeLoss({ after, last }: Positions): string {
  return `plants were lost below the service: the log went on to position ${last}, and the database has it only to ${after}`
}

/** Describes a setting for operators. */
export function describeUnsafe(name: string): string {
  return `${name} is off on the database server: ${consequences[name as keyof typeof consequences]}`
}
