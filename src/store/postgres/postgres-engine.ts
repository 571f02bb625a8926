// The distributed engine: a PostgreSQL cluster shared by any number of replicas. Each transaction locks the row of
// `head`, so that positions have no gaps and follow the order of the commits.
import pg from 'pg'
import type { ClusterStatus, OpenOptions, PlantLog } from '../engine.ts'
import { StoreMissing, StoreRefused, StoreUnavailable } from '../errors.ts'
import { type Checks, type Row, refuseWrite, type Sql, type SqlStore } from '../sql/sql.ts'
import { makeSqlStore } from '../sql/sql-store.ts'
import { refuse } from './failures.ts'
import { localHost, readUrl, splitHosts } from './hosts.ts'
import { makeLink } from './link.ts'
import { describeUnsafe, readStatus } from './postgres-status.ts'
import { makeLook, readPage } from './reader.ts'
import { Servers } from './servers.ts'
import type { Session } from './session.ts'
import { makeWriter } from './writer.ts'

/** Number of connections for reading pages; each read uses the least busy one. */
export const readConnections = 3

/** Opens the store at a `postgres://` URL, with one or several servers: `postgres://user:pass@h1:5432,h2:5432/db`. */
export async function openPostgres(url: string, options: OpenOptions): Promise<SqlStore> {
  const urls = splitHosts(url)
  const servers = new Servers(urls, options)
  try {
    const plain = findPlainHosts(urls)
    const store = await connect(servers, options)
    if (options.mode === 'serve') warn(options, plain, (await store.status()).cluster)
    return store
  } catch (error) {
    servers.close()
    const { message, cause } = error as Error
    const Refused = cause instanceof StoreMissing ? StoreMissing : StoreRefused
    throw new Refused(`cannot use the database: ${message}`, { cause })
  }
}

async function connect(servers: Servers, options: OpenOptions): Promise<SqlStore> {
  // Separate connections, so that reading the head or a token waits neither for a long page nor for a commit.
  const heads = makeLink(servers, 'head')
  const lookUps = makeLink(servers, 'look-up')
  const writes = makeLink(servers, 'writer')
  const writer = makeWriter(writes, heads, makeLink(servers, 'last-use'))
  const { append, execute } = servers.isReading ? { append: refuseWrite, execute: refuseWrite } : writer
  const select: Sql['select'] = (text, values = []) => {
    const read = async (session: Session) => {
      if (!servers.isReading) await session.prove()
      return (await session.query<Row>({ text, values })).rows
    }
    return lookUps.run(read).catch(refuse('unread'))
  }
  const look = makeLook(options)
  const head: PlantLog['head'] = (positions = []) =>
    heads.run((session) => look(session, positions)).catch(refuse('unread'))
  await (servers.isReading ? lookUps : writes).run(async () => {})
  return {
    id: servers.storeId as string,
    log: { append, head, read: makeRead(servers) },
    ...makeSqlStore({ select, execute }, checks, (id) => (servers.storeId = id)),
    status: () => readStatus(select),
    close: () => writer.idle().then(() => servers.close()),
  }
}

function warn({ logger }: OpenOptions, plain: string[], cluster: ClusterStatus | null): void {
  if (plain.length > 0)
    logger.warn(
      `the connection to ${plain} is not encrypted, or the server's certificate is not checked: add sslmode=verify-full to DATABASE_URL`,
    )
  for (const name of cluster?.unsafe ?? []) logger.warn(describeUnsafe(name))
}

function makeRead(servers: Servers): PlantLog['read'] {
  const links = Array.from({ length: readConnections }, (_, n) => makeLink(servers, `read-${n}`))
  return async (after, last, mark) => {
    const idlest = links.reduce((least, link) => (link.running() < least.running() ? link : least))
    const page = await idlest.run((session) => readPage(session, after, last, mark)).catch(refuse('unread'))
    if (page) return page
    const missing = `plants ${after + 1} to ${last} with the mark ${mark}`
    throw new StoreUnavailable('unread', `the log does not contain ${missing}`)
  }
}

/**
 * Finds the remote servers that are used without TLS, or without a check of the certificate. Throws if a file in a URL
 * (sslrootcert, sslcert, sslkey) cannot be read.
 */
export function findPlainHosts(urls: string[]): string[] {
  return urls
    .map((url) => new pg.Client(readUrl(url)))
    .filter(({ host, ssl }) => !localHost.test(host) && (!ssl || Object(ssl).rejectUnauthorized === false))
    .map(({ host, port }) => `${host}:${port}`)
}

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
