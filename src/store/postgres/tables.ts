// Finds the store in a PostgreSQL database, or makes it in one without. Any number of replicas may do so at once. Tables of
// others are never written.
import { randomBytes } from 'node:crypto'
import type { OpenOptions } from '../engine.ts'
import { StoreMissing, StoreRefused } from '../errors.ts'
import { checkVersion, earlierSchemaKey, refuseEarlier, schemaKey, steps } from '../sql/schema.ts'
import type { Session } from './session.ts'

/** Our tables, with columns that tell them from those of another application. */
const ownColumns: Record<string, string[]> = {
  meta: ['key', 'value'],
  plants: ['position', 'id', 'item', 'mark'],
  tokens: ['id', 'hash', 'scopes'],
  head: [],
  commits: ['mark', 'made_at'],
}
export const tables = Object.keys(ownColumns)

const shownTables = 5

/**
 * Resolves to the store's id. Makes a missing store if `create` is set, in one transaction. Rejects with StoreMissing or
 * StoreRefused, with the database untouched.
 */
export async function prepareStore(session: Session, options: OpenOptions): Promise<string> {
  const found = await findStore(session)
  if (found !== undefined) return found
  if (!options.create) throw new StoreMissing('it holds no plant store')
  await session.query('BEGIN ISOLATION LEVEL READ COMMITTED')
  await session.query("SELECT pg_advisory_xact_lock(hashtext('plant-store'))")
  // Another replica may have made it before this one had the lock.
  const made = await findStore(session)
  const id = made ?? (await createStore(session, options))
  await session.query('COMMIT')
  if (made === undefined) options.made?.()
  return id
}

type FoundTable = { name: string; schema: string; isOurs: boolean }

/** A table on the search path with one of our names. It may be a view. */
const namesakes = `
  SELECT name, relnamespace::regnamespace::text AS schema, columns <@ ARRAY(
    SELECT attname::text FROM pg_attribute WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped) AS "isOurs"
  FROM (VALUES ${Object.entries(ownColumns).map(([name, columns]) => `('${name}', '{${columns}}'::text[])`)})
    AS own (name, columns) JOIN pg_class ON pg_class.oid = to_regclass(name)`

/** Finds the id of the store; undefined if no table on the search path has one of our names. Throws StoreRefused. */
export async function findStore(session: Session): Promise<string | undefined> {
  const found = (await session.query<FoundTable>(namesakes)).rows
  const [first] = found
  if (first === undefined) return undefined
  const meta = found.find(({ name }) => name === 'meta')
  if (!meta?.isOurs) throw refuseForeign(meta ?? first)
  const values = await readMeta(session)
  if (values.store !== undefined && values[earlierSchemaKey] !== undefined) throw refuseEarlier('it')
  const foreign = found.find((table) => table.schema !== meta.schema || !table.isOurs)
  const version = Number(values[schemaKey])
  if (foreign) throw refuseForeign(foreign)
  if (found.length < tables.length || values.store === undefined || !(version > 0)) throw refuseForeign(meta)
  checkVersion('it', version)
  return values.store
}

async function readMeta(session: Session): Promise<Record<string, string>> {
  const text = `
    SELECT json_object_agg(key::text, value::text) AS values FROM meta WHERE key::text = ANY($1::text[])`
  const keys = ['store', schemaKey, earlierSchemaKey]
  const { rows } = await session.query<{ values: Record<string, string> | null }>({ text, values: [keys] })
  return rows[0]?.values ?? {}
}

function refuseForeign({ schema, name }: FoundTable): StoreRefused {
  return new StoreRefused(
    `${schema}.${name} is another application's table, not a plant store's: use a database for plants only`,
  )
}

/** Makes the tables; resolves to the id of the store. */
async function createStore(session: Session, { mustBeAlone }: OpenOptions): Promise<string> {
  const { rows } = await session.query<Place>(findPlace)
  const { encoding, schema, others } = rows[0] as Place
  if (mustBeAlone && others.length > 0)
    throw new StoreRefused(
      `it holds no plant store, but other tables (${others.slice(0, shownTables).join(', ')}): --create makes one beside them, if it is the right database`,
    )
  if (encoding !== 'UTF8')
    throw new StoreRefused(`its encoding is ${encoding}: make a database with ENCODING 'UTF8'`)
  for (const { postgres } of steps)
    await session.query(postgres).catch((error) => {
      throw error.code === '42501' ? refuseCreation(schema, error) : error
    })
  const id = randomBytes(16).toString('base64url')
  const values = [schemaKey, String(steps.length), id]
  await session.query({ text: "INSERT INTO meta VALUES ($1, $2), ('store', $3)", values })
  return id
}

type Place = { encoding: string; schema: string; others: string[] }

const findPlace = `
  SELECT current_setting('server_encoding') AS encoding, current_schema()::text AS schema,
    ARRAY(SELECT schemaname || '.' || relname FROM pg_stat_user_tables ORDER BY 1) AS others`

/** Since PostgreSQL 15 only the owner of a database may make tables in its schema `public`. */
function refuseCreation(schema: string, { message }: Error): StoreRefused {
  return new StoreRefused(
    `the role may not make tables in the schema ${schema}: GRANT CREATE ON SCHEMA ${schema} to it, or make it the owner of the database (${message})`,
  )
}
