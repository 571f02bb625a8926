// Brings the schema of a PostgreSQL database up to date. Any number of replicas may do so at once, and older ones may be
// at work on it meanwhile.
import { randomBytes } from 'node:crypto'
import type { Client } from 'pg'
import { checkVersion, migrations, oldestCompatible } from '../migrations.ts'
import { StoreRefused } from '../store.ts'

/** A writer looks its last batch up within seconds, or never: what is older is of no use to anybody. */
const writerMs = 24 * 60 * 60 * 1000
/** Another replica made the same table or row at the same moment: the next attempt finds it. */
const overtaken = ['23505', '42P07', '42710']
const attempts = 10

/**
 * Makes or updates the schema in one transaction. Resolves to the store's id. Throws StoreRefused, with the database
 * untouched, when it is of a newer version that this one cannot work beside, or not in UTF-8.
 */
export async function prepareSchema(client: Client): Promise<string> {
  for (let attempt = 1; attempt < attempts; attempt++) {
    try {
      return await transact(client, migrate)
    } catch (error) {
      if (!overtaken.includes(String((error as { code?: string }).code))) throw error
    }
  }
  return transact(client, migrate)
}

async function transact<T>(client: Client, work: (client: Client) => Promise<T>): Promise<T> {
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED')
  try {
    const result = await work(client)
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  }
}

async function migrate(client: Client): Promise<string> {
  const encoding = await client.query('SHOW server_encoding')
  if (encoding.rows[0].server_encoding !== 'UTF8')
    throw new StoreRefused(`it is in ${encoding.rows[0].server_encoding}: make one with ENCODING 'UTF8'`)
  await client.query('CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)')
  await client.query(
    "INSERT INTO meta VALUES ('version', '0'), ('compatible', '1'), ('store', $1) ON CONFLICT DO NOTHING",
    [randomBytes(16).toString('base64url')],
  )
  // From here on the others wait.
  await client.query("SELECT value FROM meta WHERE key = 'version' FOR UPDATE")
  const { rows } = await client.query('SELECT key, value FROM meta')
  const meta = new Map<string, string>(rows.map(({ key, value }) => [key, value]))
  const version = Number(meta.get('version'))
  checkVersion(version, Number(meta.get('compatible')))
  if (version < migrations.length) {
    for (const { postgres } of migrations.slice(version)) await client.query(postgres)
    const text = 'UPDATE meta SET value = $2 WHERE key = $1'
    await client.query(text, ['version', String(migrations.length)])
    await client.query(text, ['compatible', String(oldestCompatible)])
  }
  await client.query('DELETE FROM writers WHERE seen_at < $1', [Date.now() - writerMs])
  return String(meta.get('store'))
}
