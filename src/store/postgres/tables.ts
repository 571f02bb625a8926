// Finds or creates the store in a PostgreSQL database. Any number of replicas may do so concurrently. Tables of other
// applications are never changed.
import { randomBytes } from 'node:crypto'
import type { OpenOptions } from '../engine.ts'
import { StoreRefused } from '../errors.ts'
import { checkVersion, earlierSchemaKey, refusalOfEarlier, schemaKey, steps, version } from '../sql/schema.ts'
import type { Session } from './session.ts'

export const tables = ['meta', 'plants', 'tokens', 'head']

/** The tables or views on the search path with one of our names, `meta` first. */
const namesakes = `
  SELECT name, relnamespace::regnamespace::text AS schema
  FROM unnest('{${tables}}'::text[]) AS name JOIN pg_class ON pg_class.oid = to_regclass(name)
  ORDER BY name <> 'meta'`

/** Finds the id of the store; undefined if no table on the search path has one of our names. Throws StoreRefused. */
export async function findStore(session: Session): Promise<string | undefined> {
  const found = (await session.query<{ name: string; schema: string }>(namesakes)).rows
  const [first] = found
  if (first === undefined) return undefined
  const values = first.name === 'meta' ? await readMeta(session) : {}
  const isWhole = found.length === tables.length && found.every(({ schema }) => schema === first.schema)
  if (values.store !== undefined && values[earlierSchemaKey] !== undefined) throw refusalOfEarlier('it')
  if (!isWhole || values.store === undefined || !(Number(values[schemaKey]) > 0))
    throw new StoreRefused(
      `table ${first.schema}.${first.name} belongs to another application: use a separate database`,
    )
  checkVersion('it', Number(values[schemaKey]))
  return values.store
}

/** Reads our rows of a table `meta`, which may belong to another application and have other columns. */
async function readMeta(session: Session): Promise<Record<string, string>> {
  const text = `
    SELECT json_object_agg(entry ->> 'key', entry ->> 'value') AS values
    FROM (SELECT to_json(meta) AS entry FROM meta) AS entries WHERE entry ->> 'key' = ANY($1::text[])`
  const keys = ['store', schemaKey, earlierSchemaKey]
  const { rows } = await session.query<{ values: Record<string, string> | null }>({ text, values: [keys] })
  return rows[0]?.values ?? {}
}

/**
 * Creates a store, in one transaction, unless another replica has just created it. Resolves to its id. After a
 * rejection with StoreRefused the database is unchanged.
 */
export async function createStore(session: Session, options: OpenOptions): Promise<string> {
  await session.query('BEGIN ISOLATION LEVEL READ COMMITTED')
  await session.query("SELECT pg_advisory_xact_lock(hashtext('plant-store'))")
  const found = await findStore(session)
  const id = found ?? (await makeTables(session, options))
  await session.query('COMMIT')
  if (found === undefined) options.onCreate?.()
  return id
}

async function makeTables(session: Session, { mustBeAlone }: OpenOptions): Promise<string> {
  const { encoding, others } = (await session.query<Place>(findPlace)).rows[0] as Place
  if (mustBeAlone && others.length > 0)
    throw new StoreRefused(
      `it contains other tables (${others.join(', ')}) but no plant store; if it is the right database, use --create`,
    )
  if (encoding !== 'UTF8')
    throw new StoreRefused(`its encoding is ${encoding}: create the database with ENCODING 'UTF8'`)
  const id = randomBytes(16).toString('base64url')
  for (const { postgres } of steps) await session.query(postgres)
  await session.query(`INSERT INTO meta VALUES ('${schemaKey}', '${version}'), ('store', '${id}')`)
  return id
}

/** `others`: up to five tables of other applications, for a message. */
type Place = { encoding: string; others: string[] }

const findPlace = `
  SELECT current_setting('server_encoding') AS encoding,
    ARRAY(SELECT schemaname || '.' || relname FROM pg_stat_user_tables ORDER BY 1 LIMIT 5) AS others`
