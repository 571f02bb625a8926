// The distributed engine: a PostgreSQL cluster that any number of replicas share. Its log has no gaps and the order of
// its commits, because each batch holds the lock on the one row that says where the log ends.
import type { Client } from 'pg'
import { type Row, type Store, type StoreOptions, StoreRefused } from '../store.ts'
import { SeenHead } from './head.ts'
import { Link } from './links.ts'
import { prepareSchema } from './schema.ts'
import { PostgresWriter, unavailable } from './writer.ts'

/** Opens the store at a `postgres://` URL, which may name several servers: `postgres://user:pass@h1:5432,h2:5432/db`. */
export async function openPostgres(url: string, { logger }: StoreOptions): Promise<Store> {
  const urls = splitHosts(url)
  // Connections of their own, so that a look at the head waits neither for a long page nor for a commit.
  const [heads, reads, writes] = [new Link(urls, logger), new Link(urls, logger), new Link(urls, logger)]
  const id = await writes.run(prepareSchema).catch((error: Error) => {
    writes.close()
    throw new StoreRefused(`cannot use the database of DATABASE_URL: ${error.message}`)
  })
  const seen = new SeenHead()
  const writer = new PostgresWriter(writes, seen)
  return {
    id,
    log: {
      append: (entries) => writer.append(entries),
      head: () => heads.run((client) => seen.check(() => readHead(client))).catch(refuse),
      read: (after, count) => reads.run((client) => readItems(client, after, count)).catch(refuse),
    },
    sql: {
      select: (text, values = []) =>
        reads.run(async (client) => (await client.query<Row>(text, values)).rows).catch(refuse),
      execute: (text, values = []) => writer.execute(text, values),
    },
    async close() {
      await writer.idle()
      for (const link of [heads, reads, writes]) link.close()
    },
  }
}

async function readHead(client: Client): Promise<number> {
  const { rows } = await client.query({ name: 'head', text: 'SELECT position FROM head' })
  return rows[0].position
}

async function readItems(client: Client, after: number, count: number): Promise<string> {
  const { rows } = await client.query({
    name: 'read',
    text: `SELECT string_agg(item, ',') AS items FROM
      (SELECT item FROM plants WHERE position > $1 AND position <= $2 ORDER BY position) AS page`,
    values: [after, after + count],
  })
  return rows[0].items ?? ''
}

function refuse(cause: unknown): never {
  throw unavailable('The store cannot be read now.', cause)
}

/** One URL for each server that the URL names: the way pg takes them. */
function splitHosts(url: string): string[] {
  const [, start, hosts, end] = /^(\w+:\/\/(?:[^/]*@)?)([^/?]*)(.*)$/s.exec(url) as unknown as [
    string,
    string,
    string,
    string,
  ]
  const urls = hosts.split(',').map((host) => `${start}${host}${end}`)
  if (urls.every((one) => URL.canParse(one))) return urls
  // A database URL can hold a password: the message does not repeat it.
  throw new StoreRefused('DATABASE_URL is not like postgres://USER:PASSWORD@HOST:5432,HOST:5432/DATABASE')
}
