// Brings the schema of a PostgreSQL database up to date. Any number of replicas may do so at once, and older ones may be
// at work on it meanwhile.
import { randomBytes } from 'node:crypto'
import { checkVersion, migrations, oldestCompatible } from '../migrations.ts'
import { StoreRefused } from '../store.ts'
import { databaseMs, type Session } from './session.ts'

/** A writer looks for the note of its last batch within seconds, or never: an older one is of no use to anybody. */
const noteMs = 24 * 60 * 60 * 1000
export const deleteOldNotes = `DELETE FROM writers WHERE seen_at < ${databaseMs} - ${noteMs}`
/** Another replica made the same table or row at the same moment: the next attempt finds it. */
const overtaken = ['23505', '42P07', '42710']
const attempts = 10

/**
 * Makes or updates the schema in one transaction. Resolves to the store's id. Throws StoreRefused, with the database
 * untouched, when it is of a newer version that this one cannot work beside, or not in UTF-8.
 */
export async function prepareSchema(session: Session): Promise<string> {
  const found = await findStore(session)
  if (found !== undefined) return found
  for (let attempt = 1; attempt < attempts; attempt++) {
    try {
      return await transact(session, migrate)
    } catch (error) {
      /* c8 ignore next: whether another replica is faster is a matter of moments */
      if (!overtaken.includes(String((error as { code?: string }).code))) throw error
    }
  }
  return transact(session, migrate)
}

/** The id of a store whose schema is up to date: then nothing is locked. */
async function findStore(session: Session): Promise<string | undefined> {
  const { rows } = await session.query("SELECT to_regclass('meta') AS meta")
  if (rows[0].meta === null) return undefined
  const meta = await readMeta(session)
  if (Number(meta.get('version')) < migrations.length) return undefined
  checkVersion(Number(meta.get('version')), Number(meta.get('compatible')))
  return meta.get('store')
}

async function readMeta(session: Session): Promise<Map<string, string>> {
  const { rows } = await session.query('SELECT key, value FROM meta')
  return new Map(rows.map(({ key, value }) => [key, value]))
}

async function transact<T>(session: Session, work: (session: Session) => Promise<T>): Promise<T> {
  await session.query('BEGIN ISOLATION LEVEL READ COMMITTED')
  try {
    const result = await work(session)
    await session.query('COMMIT')
    return result
  } catch (error) {
    // When the connection broke there is nothing left to roll back; the fault itself says more.
    await session.query('ROLLBACK').catch(() => {})
    throw error
  }
}

async function migrate(session: Session): Promise<string> {
  const encoding = await session.query('SHOW server_encoding')
  if (encoding.rows[0].server_encoding !== 'UTF8')
    throw new StoreRefused(`it is in ${encoding.rows[0].server_encoding}: make one with ENCODING 'UTF8'`)
  await session.query('CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)')
  await session.query({
    text: "INSERT INTO meta VALUES ('version', '0'), ('compatible', '1'), ('store', $1) ON CONFLICT DO NOTHING",
    values: [randomBytes(16).toString('base64url')],
  })
  // From here on the others wait.
  await session.query("SELECT value FROM meta WHERE key = 'version' FOR UPDATE")
  const meta = await readMeta(session)
  const version = Number(meta.get('version'))
  checkVersion(version, Number(meta.get('compatible')))
  if (version < migrations.length) {
    for (const { postgres } of migrations.slice(version)) await session.query(postgres)
    const text = 'UPDATE meta SET value = $2 WHERE key = $1'
    await session.query({ text, values: ['version', String(migrations.length)] })
    await session.query({ text, values: ['compatible', String(oldestCompatible)] })
  }
  return String(meta.get('store'))
}
