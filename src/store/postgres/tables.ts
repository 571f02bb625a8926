// Finds or creates the store in a PostgreSQL database. Any number of replicas may do so concurrently. Tables of other
// applications are never changed.
import { randomBytes } from 'node:crypto'
import type { OpenOptions } from '../engine.ts'
import { StoreRefused } from '../errors.ts'
import { checkVersion, earlierKeys, refusalOfEarlier, schemaKey, steps, version } from '../sql/schema.ts'
import type { Session } from './session.ts'

export const tables = ['meta', 'plants', 'tokens', 'head']

/** The tables or views on the search path with one of our names, `meta` first. */
const namesakes = `
  SELECT name, relnamespace::regnamespace::text AS schema, current_setting('server_encoding') AS encoding,
    relpersistence AS persistence
  FROM unnest('{${tables}}'::text[]) AS name JOIN pg_class ON pg_class.oid = to_regclass(name)
  ORDER BY name <> 'meta'`

type Namesake = Record<'name' | 'schema' | 'encoding' | 'persistence', string>

/** `schema`: of its tables, quoted for SQL; `missing`: the steps that it lacks. */
export type FoundStore = { id: string; schema: string; missing: typeof steps }

/** Finds the store; undefined if no table on the search path has one of our names. Throws StoreRefused. */
export async function findStore(session: Session): Promise<FoundStore | undefined> {
  const found = (await session.query<Namesake>(namesakes)).rows
  const [first] = found
  if (first === undefined) return undefined
  const { name, schema, encoding } = first
  const values = name === 'meta' ? await readMeta(session) : {}
  const isWhole = found.length === tables.length && found.every((one) => one.schema === schema)
  if (values.store !== undefined && earlierKeys.some((key) => values[key])) throw refusalOfEarlier('it')
  if (!isWhole || values.store === undefined || !(Number(values[schemaKey]) > 0))
    throw new StoreRefused(`table ${schema}.${name} belongs to another application: use a separate database`)
  const step = Number(values[schemaKey])
  checkVersion('it', step)
  if (encoding !== 'UTF8')
    throw new StoreRefused(`its encoding is ${encoding}: create the database with ENCODING 'UTF8'`)
  const unlogged = found.find(({ persistence }) => persistence === 'u')
  if (unlogged)
    throw new StoreRefused(`a crash would empty its table ${unlogged.name}, which is UNLOGGED: SET LOGGED`)
  return { id: values.store, schema, missing: steps.slice(step) }
}

/** Reads our rows of a table `meta`, which may belong to another application and have other columns. */
async function readMeta(session: Session): Promise<Record<string, string>> {
  const text = `
    SELECT json_object_agg(entry ->> 'key', entry ->> 'value') AS values
    FROM (SELECT to_json(meta) AS entry FROM meta) AS entries WHERE entry ->> 'key' = ANY($1::text[])`
  const keys = ['store', schemaKey, ...earlierKeys]
  const { rows } = await session.query<{ values: Record<string, string> | null }>({ text, values: [keys] })
  return rows[0]?.values ?? {}
}

/**
 * Creates a store, or runs its missing steps, in one transaction, unless another replica has just done so. After a
 * rejection with StoreRefused the database is unchanged.
 */
export async function createStore(session: Session, options: OpenOptions): Promise<FoundStore> {
  await session.query('BEGIN ISOLATION LEVEL READ COMMITTED')
  await session.query("SELECT pg_advisory_xact_lock(hashtext('plant-store'))")
  const found = await findStore(session)
  if (found) await session.query(`SET LOCAL search_path = ${found.schema}`)
  const store = found?.missing.length === 0 ? found : await runSteps(session, options, found)
  await session.query('COMMIT')
  if (found === undefined) options.onCreate?.()
  return store
}

/** Runs the steps that `former` lacks, or all steps. */
async function runSteps(session: Session, { mustBeAlone }: OpenOptions, former?: FoundStore) {
  const others = (await session.query<{ name: string }>(findOthers)).rows.map(({ name }) => name)
  const { id, missing } = former ?? { id: randomBytes(16).toString('base64url'), missing: steps }
  if (mustBeAlone && former === undefined && others.length > 0)
    throw new StoreRefused(
      `it contains other tables (${others.join(', ')}) but no plant store; if it is the right database, use --create`,
    )
  for (const { postgres } of missing) await session.query(postgres)
  await session.query(`INSERT INTO meta (key, value) VALUES ('${schemaKey}', '${version}'), ('store', '${id}')
    ON CONFLICT (key) DO UPDATE SET value = excluded.value`)
  return (await findStore(session)) as FoundStore
}

/** Finds up to five tables of other applications, for a message. */
const findOthers = "SELECT schemaname || '.' || relname AS name FROM pg_stat_user_tables ORDER BY 1 LIMIT 5"
