// Finds the store in a PostgreSQL database, creates it in an empty one, and migrates an older one. Any number of
// replicas may do so at once. Foreign tables are never written.
import { randomBytes } from 'node:crypto'
import type { StoreOptions } from '../engine.ts'
import { StoreRefused } from '../errors.ts'
import { checkUpgrade, checkVersion, migrations, refuseInUse } from '../format/migrations.ts'
import type { Session } from './session.ts'

/** `schema`: its quoted name. */
type FoundStore = { id: string; version: number; schema: string }

/** Our tables, with columns that tell them from those of another application. */
const ownColumns: Record<string, string[]> = {
  meta: ['key', 'value'],
  plants: ['position', 'id', 'item'],
  tokens: ['id', 'hash', 'scopes'],
  head: [],
  writers: ['id', 'batch', 'seen_at'],
  epochs: ['number', 'epoch', 'start'],
  segments: ['last', 'items'],
}
export const tables = Object.keys(ownColumns)
/** The tables of every version. */
const oldest = tables.slice(0, 5)

/**
 * The oldest schema version whose code works on the current schema: in a rolling upgrade old replicas run on the new
 * schema beside new ones. Raise it only when they cannot, one release after the one that stopped needing it.
 */
const oldestCompatible = 2

/** SQLSTATEs when another replica creates the same table at the same moment; the next attempt finds it. */
const overtaken = ['23505', '42P07', '42710']
const attempts = 10
const shownTables = 5

/**
 * Creates or migrates the schema in one transaction; resolves to the store's id. Throws StoreRefused, with the database
 * untouched, when it is another application's, of an incompatible newer version, or not in UTF-8.
 */
export async function prepareSchema(session: Session, options: StoreOptions): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const found = await findStore(session)
    if (!found && options.mustExist) throw new StoreRefused('it holds no plant store')
    if (found) checkUpgrade(found.version, options.keepsSchema)
    if (found && found.version >= migrations.length) return found.id
    try {
      await session.query('BEGIN ISOLATION LEVEL READ COMMITTED')
      await (found ? upgrade(session, found) : create(session, options))
      await session.query('COMMIT')
      if (!found) options.made?.()
    } catch (error) {
      /* c8 ignore next 3: whether another replica is faster is a matter of moments */
      if (attempt === attempts || !overtaken.includes(String((error as { code?: string }).code))) throw error
      await session.query('ROLLBACK')
    }
  }
}

type FoundTable = { name: string; schema: string; columns: string[] }

/** Finds the store; undefined when no table on the search path has one of our names. Throws StoreRefused. */
export async function findStore(session: Session): Promise<FoundStore | undefined> {
  const text = `
    SELECT name, relnamespace::regnamespace::text AS schema, ARRAY(
      SELECT attname::text FROM pg_attribute WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped) AS columns
    FROM unnest($1::text[]) AS name JOIN pg_class ON pg_class.oid = to_regclass(name)`
  const found = (await session.query<FoundTable>({ text, values: [tables] })).rows
  if (found.length === 0) return undefined
  const meta = found.find(({ name }) => name === 'meta')
  const foreign = found.find((table) => table.schema !== meta?.schema || !hasOwnColumns(table))
  if (foreign) throw refuseForeign(foreign)
  const { rows } = await session.query<{ values: Record<string, string> | null }>(`
    SELECT json_object_agg(key, value) AS values FROM meta
    WHERE key::text IN ('store', 'version', 'compatible')`)
  const { store, version, compatible } = rows[0]?.values ?? {}
  const isWhole = oldest.every((own) => found.some(({ name }) => name === own))
  if (!isWhole || store === undefined || !(Number(version) > 0)) throw refuseForeign(meta as FoundTable)
  checkVersion(Number(version), Number(compatible))
  return { id: store, version: Number(version), schema: (meta as FoundTable).schema }
}

function hasOwnColumns({ name, columns }: FoundTable): boolean {
  return (ownColumns[name] as string[]).every((column) => columns.includes(column))
}

function refuseForeign({ schema, name }: FoundTable): StoreRefused {
  return new StoreRefused(
    `${schema}.${name} is another application's table, not a plant store's: use a database of its own`,
  )
}

/** Names the tables of the database. */
async function findTables(session: Session): Promise<string[]> {
  const { rows } = await session.query(`
    SELECT schemaname || '.' || relname AS name FROM pg_stat_user_tables ORDER BY 1`)
  return rows.map(({ name }) => String(name))
}

async function create(session: Session, { mustBeAlone }: StoreOptions): Promise<void> {
  const others = mustBeAlone ? await findTables(session) : []
  if (others.length > 0)
    throw new StoreRefused(
      `it holds no plant store, but other tables (${others.slice(0, shownTables).join(', ')}): --create makes one beside them, if it is the right database`,
    )
  const { rows } = await session.query('SHOW server_encoding')
  const encoding = rows[0]?.server_encoding
  if (encoding !== 'UTF8') throw new StoreRefused(`it is in ${encoding}: make one with ENCODING 'UTF8'`)
  await session.query('CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)')
  await session.query({
    text: "INSERT INTO meta VALUES ('version', '0'), ('compatible', '0'), ('store', $1)",
    values: [randomBytes(16).toString('base64url')],
  })
  await migrate(session, 0)
}

/** Migrates the schema, with new tables beside the old ones, wherever the search path begins. */
async function upgrade(session: Session, { schema }: FoundStore): Promise<void> {
  await session.query(`SET LOCAL search_path TO ${schema}`)
  const { rows } = await session.query("SELECT value FROM meta WHERE key = 'version' FOR UPDATE")
  const version = Number(rows[0]?.value)
  /* c8 ignore next: another replica was first, between the look and the lock */
  if (version >= migrations.length) return
  await refuseOlderServices(session)
  await migrate(session, version)
}

/**
 * Query for sessions of version 1.0.0, which have no name, by their last statement. It misses sessions of other roles
 * if this role may not see their statements, and sessions named by their URL.
 */
const unnamed = `
  SELECT DISTINCT coalesce(host(client_addr), 'localhost') AS host FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = ''
    AND query ~ '^COMMIT$|enable_seqscan|\\m(head|writers|plants|tokens)\\M' ORDER BY 1`

/** Throws StoreRefused when a service of version 1.0.0 seems to run on the database. */
async function refuseOlderServices(session: Session): Promise<void> {
  const { rows } = await session.query<{ host: string }>(unnamed)
  if (rows.length > 0)
    refuseInUse(`sessions like those of 1.0.0 are open from ${rows.map(({ host }) => host).join(', ')}`)
}

async function migrate(session: Session, version: number): Promise<void> {
  for (const { postgres } of migrations.slice(version)) await session.query(postgres)
  const text = 'UPDATE meta SET value = $2 WHERE key = $1'
  await session.query({ text, values: ['version', String(migrations.length)] })
  await session.query({ text, values: ['compatible', String(oldestCompatible)] })
}
