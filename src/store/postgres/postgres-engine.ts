// The distributed engine: a PostgreSQL cluster shared by any number of replicas. Each batch locks the one row of `head`,
// so that positions have no gaps and follow the order of the commits.
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import type { OpenOptions, PlantLog } from '../engine.ts'
import { StoreMissing, StoreRefused } from '../errors.ts'
import { storeLimitMs } from '../in-time.ts'
import type { Row, Sql, SqlStore } from '../sql/sql.ts'
import { makeSqlStore } from '../sql/sql-store.ts'
import { refuse } from './failures.ts'
import { isLocal, readUrl, splitHosts } from './hosts.ts'
import { type Link, makeLink } from './link.ts'
import { postgresDialect } from './postgres-dialect.ts'
import { describeLoss, describeUnsafe, readStatus, serviceName } from './postgres-status.ts'
import { openToRead } from './read-only.ts'
import { makeLook, readPage } from './reader.ts'
import { Servers } from './servers.ts'
import { makeWriter } from './writer.ts'

/** Connections for reading pages; each read goes to the least busy one. */
export const readConnections = 3

/** Opens the store at a `postgres://` URL, with one or several servers: `postgres://user:pass@h1:5432,h2:5432/db`. */
export async function openPostgres(url: string, options: OpenOptions): Promise<SqlStore> {
  const urls = splitHosts(url)
  try {
    return await (options.mode === 'read' ? openToRead(urls) : openToWrite(urls, options))
  } catch (error) {
    const { message, cause } = error as Error
    const Refused = cause instanceof StoreMissing ? StoreMissing : StoreRefused
    throw new Refused(`cannot use the database: ${message}`, { cause })
  }
}

async function openToWrite(urls: string[], options: OpenOptions): Promise<SqlStore> {
  const { logger, mode, patienceMs = 0 } = options
  const name = `${mode === 'serve' ? serviceName : 'plant-store'} ${randomBytes(6).toString('base64url')}`
  const servers = new Servers(urls, name, options)
  // Separate connections, so that reading the head or a token waits neither for a long page nor for a commit.
  const heads = makeLink(servers, 'head')
  const lookUps = makeLink(servers, 'look-up')
  const writes = makeLink(servers, 'writer')
  const { append, execute, idle } = makeWriter(writes, heads)
  const select: Sql['select'] = (text, values = []) =>
    lookUps.run(async (session) => (await session.query<Row>({ text, values })).rows).catch(refuse('unread'))
  const status = () => readStatus(select)
  try {
    const plain = findPlainHosts(urls)
    await writes.run(async () => {}, performance.now() + Math.max(patienceMs, storeLimitMs))
    const unsafe = mode === 'serve' ? (await status()).cluster?.unsafe : undefined
    if (unsafe && plain.length > 0) logger.warn(describePlain(plain))
    for (const name of unsafe ?? []) logger.warn(describeUnsafe(name))
  } catch (error) {
    servers.close()
    throw error
  }
  const shared = makeSqlStore({ select, execute }, postgresDialect)
  const log = { append, head: makeHead(heads, options), read: makeRead(servers) }
  return {
    id: servers.storeId as string,
    log,
    ...shared,
    copy: {
      ...shared.copy,
      async adopt(id) {
        const isAdopted = await shared.copy.adopt(id)
        if (isAdopted) servers.storeId = id
        return isAdopted
      },
    },
    status,
    fault: () => servers.fault,
    async ready() {
      // The lock of an empty batch makes its COMMIT wait for the standbys.
      await Promise.all([append([]), log.head()])
    },
    async close() {
      await idle()
      servers.close()
    },
  }
}

/** Makes `head` of the log, which reports that plants were lost. */
function makeHead(link: Link, { logger, lost }: OpenOptions): PlantLog['head'] {
  const look = makeLook((positions) => {
    logger.error(positions, describeLoss(positions))
    lost?.()
  })
  return (positions = []) => link.run((session) => look(session, positions)).catch(refuse('unread'))
}

function makeRead(servers: Servers): PlantLog['read'] {
  const links = Array.from({ length: readConnections }, (_, n) => makeLink(servers, `read-${n}`))
  return (after, last, mark) => {
    const idlest = links.reduce((least, link) => (link.running() < least.running() ? link : least))
    return idlest.run((session) => readPage(session, after, last, mark)).catch(refuse('unread'))
  }
}

function describePlain(hosts: string[]): string {
  return `passwords and plants go to ${hosts.join(', ')} without encryption, or to any server that answers there: add sslmode=verify-full to DATABASE_URL`
}

/**
 * Finds the servers (host:port) on other hosts that are reached without TLS, or without checking their certificate.
 * Throws if a file in a URL (sslrootcert, sslcert, sslkey) cannot be read.
 */
export function findPlainHosts(urls: string[]): string[] {
  return urls.flatMap((url) => {
    const { host, port, ssl } = new pg.Client(readUrl(url).options)
    const { rejectUnauthorized = true } = Object(ssl)
    const isSafe = ssl && rejectUnauthorized
    return isSafe || isLocal(host) ? [] : [`${host}:${port}`]
  })
}
