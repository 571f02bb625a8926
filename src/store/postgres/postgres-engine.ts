// The distributed engine: a PostgreSQL cluster shared by any number of replicas. Each batch locks the one head row, so
// that positions have no gaps and follow the order of the commits.
import { randomBytes } from 'node:crypto'
import { isIPv4 } from 'node:net'
import pg from 'pg'
import { readConnections, storeLimitMs } from '../../limits.ts'
import type { StoreOptions } from '../engine.ts'
import { StoreRefused } from '../errors.ts'
import type { Row, Select, SqlStore } from '../sql/sql.ts'
import { makeSqlStore } from '../sql/sql-store.ts'
import { makeHeadReader } from './epoch-notes.ts'
import { refuse } from './failures.ts'
import { splitHosts } from './hosts.ts'
import { readItems } from './items.ts'
import { Link } from './links.ts'
import { postgresDialect } from './postgres-dialect.ts'
import { describeLoss, describeUnsafe, findUnsafe, lossKey, serviceName } from './postgres-status.ts'
import { Servers } from './servers.ts'
import { PostgresWriter } from './writer.ts'

const noteLoss =
  'INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value'

/** Opens the store at a `postgres://` URL, with one or several servers: `postgres://user:pass@h1:5432,h2:5432/db`. */
export async function openPostgres(url: string, options: StoreOptions): Promise<SqlStore> {
  const { logger, isService, patienceMs = storeLimitMs } = options
  const name = isService ? serviceName : 'plant-store'
  const processId = randomBytes(16).toString('base64url')
  const urls = splitHosts(url)
  const servers = new Servers(urls, `${name} ${processId}`, options)
  // Separate connections, so that reading the head or a token waits neither for a long page nor for a commit.
  const heads = new Link(servers, 'head')
  const lookUps = new Link(servers, 'look-up')
  const writes = new Link(servers, 'writer')
  const probes = new Link(servers, 'probe')
  // Pools in src/plants/list/ bound the reads; each goes to the least busy connection.
  const reads = Array.from({ length: readConnections }, (_, n) => new Link(servers, `read-${n}`))
  const writer = new PostgresWriter(writes, heads, processId)
  const readHead = makeHeadReader((lost) => {
    const loss = { ...lost, at: new Date().toISOString() }
    logger.error(loss, describeLoss(loss))
    options.lost?.(loss.last - loss.after)
    const note = writer.execute(noteLoss, [lossKey, JSON.stringify(loss)])
    note.catch((error) => logger.warn({ reason: error.message }, 'the loss could not be noted for status'))
  })
  const head = () => heads.run(readHead).catch(refuse('unread'))

  const select: Select = (text, values = []) =>
    lookUps.run(async (session) => (await session.query<Row>({ text, values })).rows).catch(refuse('unread'))
  const unsafeSettings = async () => (await select(findUnsafe)).map(({ name }) => String(name))

  try {
    const plain = findPlainHosts(urls)
    await writer.begin(performance.now() + Math.max(patienceMs, storeLimitMs))
    const unsafe = await unsafeSettings()
    if (!options.isFurther) for (const warning of describeRisks(plain, unsafe)) logger.warn(warning)
  } catch (error) {
    servers.close()
    throw new StoreRefused(`cannot use the database of DATABASE_URL: ${(error as Error).message}`)
  }
  return {
    id: servers.storeId as string,
    log: {
      append: writer.append,
      head,
      read: (after, last, epoch) =>
        findIdlest(reads)
          .run((session) => readItems(session, { after, last, epoch }))
          .catch(refuse('unread')),
    },
    ...makeSqlStore({ select, execute: writer.execute }, postgresDialect),
    unsafeSettings,
    share: () => undefined,
    fault: () => servers.fault,
    async ready() {
      // A server may accept connections while the standbys that a commit waits for are missing.
      const probe = probes.run((session) => session.passBarrier())
      await Promise.all([
        head(),
        writes.run(async () => {}).catch(refuse('nothing-added')),
        probe.catch(refuse('nothing-added')),
      ])
    },
    async close() {
      await writer.idle()
      servers.close()
    },
  }
}

function describeRisks(plainHosts: string[], unsafe: string[]): string[] {
  const plain = `passwords and plants go to ${plainHosts.join(', ')} without encryption, or to whoever answers there: add sslmode=verify-full to DATABASE_URL`
  return [...(plainHosts.length > 0 ? [plain] : []), ...unsafe.map(describeUnsafe)]
}

function findIdlest(links: Link[]): Link {
  return links.reduce((least, link) => (link.running < least.running ? link : least))
}

/**
 * Servers (host:port) on other hosts that are reached without TLS, or without checking their certificate. Throws when a
 * file in a URL (sslrootcert, sslcert, sslkey) cannot be read.
 */
export function findPlainHosts(urls: string[]): string[] {
  return urls.flatMap((url) => {
    const { host, port, ssl } = new pg.Client({ connectionString: url })
    const { rejectUnauthorized = true } = Object(ssl)
    const isSafe = ssl && rejectUnauthorized
    return isSafe || isHere(host) ? [] : [`${host}:${port}`]
  })
}

/** True for a socket, and for the machine's own addresses. */
function isHere(host: string): boolean {
  if (host.startsWith('/') || host === 'localhost' || host === '::1') return true
  return isIPv4(host) && host.startsWith('127.')
}
