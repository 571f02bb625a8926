// The status of a PostgreSQL cluster. Only the state of the standbys needs a role, pg_monitor.
import type { ClusterStatus, EngineStatus, ServiceStatus, Standby } from '../engine-status.ts'
import { serviceName } from '../store.ts'
import type { StoreView } from '../view.ts'
import { findUnsafe } from './durability.ts'
import { tables } from './postgres-schema.ts'

const server = `
  SELECT current_setting('server_version'), coalesce(host(inet_server_addr()), 'localhost'),
    current_setting('port'), pg_is_in_recovery()::text,
    (SELECT sum(pg_total_relation_size(to_regclass(name)))::bigint
      FROM unnest($1::text[]) AS name)`

export async function readPostgresStatus(view: StoreView): Promise<EngineStatus> {
  const [row] = await view.select<[string, string, string, string, number]>(server, [`{${tables}}`])
  const [engineVersion, host, port, standby, bytes] = row as [string, string, string, string, number]
  const cluster: ClusterStatus = {
    server: `${host}:${port}`,
    role: standby === 'true' ? 'standby' : 'primary',
    standbys: await listStandbys(view),
    unsafe: (await view.select<[string]>(findUnsafe)).flat(),
  }
  return { engineVersion, bytes, cluster, service: await findService(view, cluster.role) }
}

const standbys = `
  SELECT application_name, host(client_addr), state, sync_state,
    CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint END,
    extract(epoch FROM replay_lag)::float8
  FROM pg_stat_replication ORDER BY application_name, pid`

async function listStandbys(view: StoreView): Promise<Standby[]> {
  type Fields = [string, string | null, string | null, string | null, number | null, number | null]
  const rows = await view.select<Fields>(standbys)
  return rows.map(([name, address, state, sync, lagBytes, lagSeconds]) => ({
    name,
    address,
    state,
    sync,
    lagBytes,
    lagSeconds,
  }))
}

/** Query for services: the sessions of each thread share a name. */
const threads = `
  SELECT coalesce(host(client_addr), 'localhost'), count(DISTINCT application_name) FROM pg_stat_activity
  WHERE datname = current_database() AND application_name LIKE $1 || ' %' GROUP BY 1 ORDER BY 1`

/** Finds running services; unknown on a standby, as services use the primary. */
async function findService(view: StoreView, role: ClusterStatus['role']): Promise<ServiceStatus> {
  const clients = await view.select<[string, number]>(threads, [serviceName])
  const isUnknown = clients.length === 0 && role === 'standby'
  const by = clients.map(([host, number]) => `serve (${host}${number > 1 ? `, ${number} threads` : ''})`)
  return { running: isUnknown ? null : clients.length > 0, by }
}
