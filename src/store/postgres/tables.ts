// Finds the store in a PostgreSQL database, or makes it in one without. Any number of replicas may do so at once. Tables of
// others are never written.
import { randomBytes } from 'node:crypto'
import pg from 'pg'
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

/** SQLSTATEs if another replica creates the same table at the same moment; the next attempt finds it. */
const overtaken = ['23505', '42P07', '42710']
const attempts = 10
const shownTables = 5

/**
 * Resolves to the store's id. Makes a missing store if `create` is set, in one transaction. Rejects with StoreMissing or
 * StoreRefused, with the database untouched.
 */
export async function prepareStore(session: Session, options: OpenOptions): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const found = await findStore(session)
    if (found !== undefined) return found
    if (!options.create) throw new StoreMissing('it holds no plant store')
    try {
      await createStore(session, options)
      options.made?.()
    } catch (error) {
      if (attempt === attempts || !overtaken.includes(codeOf(error))) throw error
      await session.query('ROLLBACK')
    }
  }
}

type FoundTable = { name: string; schema: string; columns: string[] }

/** Finds the id of the store; undefined if no table on the search path has one of our names. Throws StoreRefused. */
export async function findStore(session: Session): Promise<string | undefined> {
  const text = `
    SELECT name, relnamespace::regnamespace::text AS schema, ARRAY(
      SELECT attname::text FROM pg_attribute WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped) AS columns
    FROM unnest($1::text[]) AS name JOIN pg_class ON pg_class.oid = to_regclass(name)`
  const found = (await session.query<FoundTable>({ text, values: [tables] })).rows
  const [first] = found
  if (first === undefined) return undefined
  const meta = found.find(({ name }) => name === 'meta')
  if (!meta || !hasOwnColumns(meta)) throw refuseForeign(meta ?? first)
  const values = await readMeta(session)
  if (values.store !== undefined && values[earlierSchemaKey] !== undefined) throw refuseEarlier('it')
  const foreign = found.find((table) => table.schema !== meta.schema || !hasOwnColumns(table))
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

function hasOwnColumns({ name, columns }: FoundTable): boolean {
  return (ownColumns[name] as string[]).every((column) => columns.includes(column))
}

function refuseForeign({ schema, name }: FoundTable): StoreRefused {
  return new StoreRefused(
    `${schema}.${name} is another application's table, not a plant store's: use a database for plants only`,
  )
}

async function createStore(session: Session, { mustBeAlone }: OpenOptions): Promise<void> {
  const { rows } = await session.query<Place>(findPlace)
  const { encoding, schema, others } = rows[0] as Place
  if (mustBeAlone && others.length > 0)
    throw new StoreRefused(
      `it holds no plant store, but other tables (${others.slice(0, shownTables).join(', ')}): --create makes one beside them, if it is the right database`,
    )
  if (encoding !== 'UTF8')
    throw new StoreRefused(`its encoding is ${encoding}: make a database with ENCODING 'UTF8'`)
  await session.query('BEGIN ISOLATION LEVEL READ COMMITTED')
  for (const { postgres } of steps)
    await session.query(postgres).catch((error) => {
      throw codeOf(error) === '42501' ? refuseCreation(schema, error) : error
    })
  const values = [schemaKey, String(steps.length), randomBytes(16).toString('base64url')]
  await session.query({ text: "INSERT INTO meta VALUES ($1, $2), ('store', $3)", values })
  await session.query('COMMIT')
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

function codeOf(error: unknown): string {
  return error instanceof pg.DatabaseError ? String(error.code) : ''
}
