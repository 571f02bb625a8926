// The distributed engine: a PostgreSQL cluster shared by any number of replicas. Each addition locks the row of `head`, so
// that positions have no gaps and follow the order of the commits.
import type { EngineStatus, OpenOptions, PlantLog } from '../engine.ts'
import { StoreRefused, StoreUnavailable } from '../errors.ts'
import { type Checks, type Row, refuseWrite, type Sql, type SqlStore } from '../sql/sql.ts'
import { makeSqlStore } from '../sql/sql-store.ts'
import { refuse } from './failures.ts'
import { splitHosts } from './hosts.ts'
import { makeLink } from './link.ts'
import { makeHeadReader, readPage } from './reader.ts'
import { Servers } from './servers.ts'
import type { Session } from './session.ts'
import { tables } from './tables.ts'
import { makeWriter } from './writer.ts'

/** Number of connections for reading pages; each read uses the least busy one. */
export const readConnections = 3

/** Opens the store at a `postgres://` URL, with one or several servers: `postgres://user:pass@h1:5432,h2:5432/db`. */
export async function openPostgres(url: string, options: OpenOptions): Promise<SqlStore> {
  const servers = new Servers(splitHosts(url), options)
  try {
    return await connect(servers, options)
  } catch (error) {
    servers.close()
    const { message, cause } = error as Error
    const isMissing = cause instanceof StoreRefused && cause.isMissing
    throw new StoreRefused(`cannot use the database: ${message}`, { cause, isMissing })
  }
}

async function connect(servers: Servers, options: OpenOptions): Promise<SqlStore> {
  // Separate connections, so that reading the head or a token waits neither for a long page nor for a commit.
  const heads = makeLink(servers, 'head')
  const lookUps = makeLink(servers, 'look-up')
  const writes = makeLink(servers, 'writer')
  const writer = makeWriter({ link: writes, heads, minors: makeLink(servers, 'last-use') })
  const { append, execute } = servers.isReading ? { append: refuseWrite, execute: refuseWrite } : writer
  const select: Sql['select'] = (text, values = []) => {
    const read = async (session: Session) => {
      if (!servers.isReading) await session.passBarrier()
      return (await session.query<Row>({ text, values })).rows
    }
    return lookUps.run(read).catch(refuse('unread'))
  }
  const readHead = makeHeadReader(options)
  const head: PlantLog['head'] = (positions = []) =>
    heads.run((session) => readHead(session, positions)).catch(refuse('unread'))
  await (servers.isReading ? lookUps : writes).run(async () => {})
  return {
    id: servers.storeId as string,
    log: { append, head, read: makeRead(servers) },
    ...makeSqlStore({ select, execute }, checks, (id) => (servers.storeId = id)),
    status: async () => (await select(readStatus))[0] as EngineStatus,
    close: () => writer.idle().then(() => servers.close()),
  }
}

function makeRead(servers: Servers): PlantLog['read'] {
  const links = Array.from({ length: readConnections }, (_, n) => makeLink(servers, `read-${n}`))
  return async (after, last, mark) => {
    const chosen = links.reduce((least, link) => (link.running() < least.running() ? link : least))
    const page = await chosen.run((session) => readPage(session, after, last, mark)).catch(refuse('unread'))
    if (page) return page
    throw new StoreUnavailable('unread', `the log does not contain plants ${after + 1} to ${last} of ${mark}`)
  }
}

/** Reads the status. Only the state of the standbys requires the role pg_monitor. */
const readStatus = `
  SELECT current_setting('server_version') AS "engineVersion",
    (SELECT sum(pg_total_relation_size(to_regclass(name)))::bigint FROM unnest('{${tables}}'::text[]) AS name) AS bytes,
    json_build_object(
      'server', coalesce(host(inet_server_addr()), 'localhost') || ':' || current_setting('port'),
      'role', CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END,
      'standbys', ARRAY(SELECT to_json(standby) FROM (
        SELECT application_name AS name, host(client_addr) AS address, state, sync_state AS sync,
          CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint END
            AS "lagBytes",
          extract(epoch FROM replay_lag)::float8 AS "lagSeconds"
        FROM pg_stat_replication ORDER BY application_name, pid) AS standby)) AS cluster`

const checks: Checks = {
  'the schema': `
    SELECT column1 || ' is missing from the schema' AS fault
    FROM (VALUES ('plants_pkey'), ('plants_id'), ('plants_no_change'), ('plants_no_truncate')) AS guards
    WHERE column1 NOT IN (
      SELECT tgname::text FROM pg_trigger WHERE tgrelid = 'plants'::regclass AND tgenabled <> 'D'
      UNION ALL SELECT relname::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE indrelid = 'plants'::regclass AND indisvalid)
    UNION ALL SELECT 'the table head has ' || count(*) || ' rows instead of one'
      FROM head HAVING count(*) <> 1`,
}
