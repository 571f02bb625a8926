// The status of a PostgreSQL cluster. Only the state of the standbys needs a role, pg_monitor.
import { serviceName } from '../store.ts'
import type { ClusterStatus, EngineStatus, Loss, ServiceStatus, Standby, StoreView } from '../view.ts'
import { tables } from './postgres-schema.ts'

type View = Pick<StoreView, 'select'>

const server = `
  SELECT current_setting('server_version'),
    coalesce(host(inet_server_addr()), 'localhost') || ':' || current_setting('port'),
    CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END,
    (SELECT sum(pg_total_relation_size(to_regclass(name)))::bigint FROM unnest($1::text[]) AS name)`

export async function readPostgresStatus(view: View): Promise<EngineStatus> {
  type Fields = [version: string, server: string, role: ClusterStatus['role'], bytes: number]
  const [row] = await view.select<Fields>(server, [`{${tables}}`])
  const [engineVersion, address, role, bytes] = row as Fields
  const unsafe = (await view.select<[string]>(findUnsafe)).flat()
  const found: unknown[] = (await view.select(standbys)).flat()
  const [noted] = (await view.select<[string]>('SELECT value FROM meta WHERE key = $1', [lossKey])).flat()
  const loss: Loss | null = noted === undefined ? null : JSON.parse(noted)
  const cluster = { server: address, role, standbys: found as Standby[], unsafe, loss }
  return { engineVersion, bytes, cluster, service: await findService(view, role) }
}

/** Query for the standbys as JSON objects. */
const standbys = `
  SELECT row_to_json(standby) FROM (
    SELECT application_name AS name, host(client_addr) AS address, state, sync_state AS sync,
      CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint END
        AS "lagBytes",
      extract(epoch FROM replay_lag)::float8 AS "lagSeconds"
    FROM pg_stat_replication ORDER BY application_name, pid) AS standby`

/** Query for services: the sessions of each thread share a name. */
const threads = `
  SELECT coalesce(host(client_addr), 'localhost'), count(DISTINCT application_name) FROM pg_stat_activity
  WHERE datname = current_database() AND application_name LIKE $1 || ' %' GROUP BY 1 ORDER BY 1`

/** Finds running services; unknown on a standby, as services use the primary. */
async function findService(view: View, role: ClusterStatus['role']): Promise<ServiceStatus> {
  const clients = await view.select<[string, number]>(threads, [serviceName])
  const isUnknown = clients.length === 0 && role === 'standby'
  const by = clients.map(([host, number]) => `serve (${host}${number > 1 ? `, ${number} threads` : ''})`)
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
export function describeLoss({ after, last }: Omit<Loss, 'at'>): string {
  return `plants were lost below the service: the log went on to position ${last}, and the database has it only to ${after}`
}

/** Describes a setting for operators. */
export function describeUnsafe(name: string): string {
  return `${name} is off on the database server: ${consequences[name as keyof typeof consequences]}`
}
