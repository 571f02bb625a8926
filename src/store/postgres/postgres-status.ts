// The status of a PostgreSQL cluster. Only the state of the standbys requires the role pg_monitor.
import type { ClusterStatus, EngineStatus } from '../engine.ts'
import type { Sql } from '../sql/sql.ts'
import { tables } from './tables.ts'

const readServer = `
  SELECT current_setting('server_version') AS version,
    coalesce(host(inet_server_addr()), 'localhost') || ':' || current_setting('port') AS server,
    CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END AS role,
    (SELECT sum(pg_total_relation_size(to_regclass(name)))::bigint FROM unnest($1::text[]) AS name) AS bytes,
    ARRAY(SELECT to_json(standby) FROM (
      SELECT application_name AS name, host(client_addr) AS address, state, sync_state AS sync,
        CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint END
          AS "lagBytes",
        extract(epoch FROM replay_lag)::float8 AS "lagSeconds"
      FROM pg_stat_replication ORDER BY application_name, pid) AS standby) AS standbys`

type Server = ClusterStatus & { version: string; bytes: number }

export async function readStatus(select: Sql['select']): Promise<EngineStatus> {
  const rows = await select(readServer, [`{${tables}}`])
  const { version, bytes, ...cluster } = rows[0] as unknown as Server
  return { engineVersion: version, bytes, cluster }
}
