// Databases that come from elsewhere: from an older version, from a dump, from another store.
import { readFileSync } from 'node:fs'
import pg from 'pg'
import tap, { type Test } from 'tap'
import { openView } from '../../src/store/engines.ts'
import { migrations } from '../../src/store/format/migrations.ts'
import { hashToken } from '../../src/tokens/format.ts'
import { findEngine, sharedServer } from '../support/engines.ts'
import { entries, eventually, namesIn, openLog, Sightings } from '../support/logs.ts'
import { connect } from '../support/postgres.ts'
import { request, startThreads } from '../support/service.ts'
import type { Store } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { compose, send } from '../support/wire.ts'
import { makeKept } from './kept.ts'

const { engine: postgres, skip } = findEngine('PostgreSQL')
const kept = readFileSync(new URL('../fixtures/postgres-1.0.0.sql', import.meta.url), 'utf8')
const token = 'plant_2GS2RA3D_rr8vKNV5DDXKTpKngvLWge9YOpYGvDSr_2bGXX6'
const plants = [
  { name: 'Monstera', tag: 'indoor' },
  { name: "Ficus 'Tineke' \\", tag: '' },
  { name: 'ヤシ 🌴', tag: 'outdoor' },
  { name: 'Aloe "vera"', tag: 'x\u2028y' },
]

async function assertKept(t: Test, { id, log, sql }: Store): Promise<void> {
  t.equal(id, 'LGwWrdUFM214ZXBdLLhXmg')
  const { position, epochs } = await log.head()
  t.equal(position, 4)
  t.not(epochs.owner(4), '', 'the plants belong to an epoch')
  const items = await log.read(0, 4, epochs.owner(4))
  t.equal(String(items), `[${plants.map((plant) => JSON.stringify(plant))}]`, 'to the byte')
  const [row] = await sql.select('SELECT hash, scopes FROM tokens WHERE id = $1', ['2GS2RA3D'])
  t.equal(row?.hash, hashToken(token), 'a token that was issued then is honoured')
  t.equal(row?.scopes, 'plants:read plants:write')
}

tap.test('a database of 1.0.0 goes on with its plants, its token and its ids', { skip }, async (t) => {
  const server = await sharedServer()
  await server.query('CREATE ROLE plain LOGIN')
  await server.query('CREATE DATABASE kept OWNER plain')
  const url = server.url('kept').replace('postgres@', 'plain@')
  await (await connect(t, url)).query(kept)
  const store = await openLog(t, url)
  await assertKept(t, store)
  const item = (plant: object) => JSON.stringify(plant)
  const outcomes = await store.log.append([
    { item: item({ name: 'Monstera', tag: 'indoor' }), id: 7 },
    { item: item({ tag: 'outdoor', name: 'ヤシ 🌴' }), id: Number.MAX_SAFE_INTEGER },
    { item: item({ name: 'Monstera', tag: 'outdoor' }), id: 7 },
    { item: item({ name: 'Calathea', tag: '' }), id: 8 },
  ])
  t.strictSame(outcomes, ['replayed', 'replayed', 'conflict', 'added'], 'retries go by value')
  const { epochs } = await store.log.head()
  t.not(epochs.owner(5), epochs.owner(4), 'the first batch here begins an epoch')
  const [row] = await store.sql.select(
    'SELECT usesuper::int AS super FROM pg_user WHERE usename = current_user',
  )
  t.equal(row?.super, 0, 'and all that as a normal user')
})

tap.test(
  'a 1.0.0 process beside the present schema adds nothing, and shows no log that stands still',
  { skip },
  async (t) => {
    const url = await postgres.createDatabase(t)
    const client = await connect(t, url)
    await client.query(kept)
    const head = 'SELECT position, tableoid AS table FROM head'
    await client.query({ name: 'prepared before', text: head })
    await openLog(t, url)
    const note =
      "INSERT INTO writers VALUES ('a', 1, 0) ON CONFLICT (id) DO UPDATE SET batch = excluded.batch"
    for (const [text, reason] of [
      [`${head} FOR UPDATE`, /"position" does not exist/],
      ['UPDATE head SET position = 5', /"position" of relation "head" does not exist/],
      [note, /no unique .* matching the ON CONFLICT/],
    ] as const)
      await t.rejects(client.query(text), { message: reason })
    await t.rejects(client.query({ name: 'prepared before', text: head }), { message: /does not exist/ })
    const { rows } = await client.query("SELECT value::int FROM meta WHERE key = 'compatible'")
    t.ok(rows[0].value > 1, 'and it does not start')
  },
)

tap.test('a dump that is put back under a running store', { skip }, async (t) => {
  const url = await postgres.createDatabase(t)
  const client = await connect(t, url)
  await client.query(kept)
  const store = await openLog(t, url)
  await assertKept(t, store)
  const sightings = new Sightings()
  await store.log.append(entries('lost'))
  await sightings.look(store)
  await client.query(
    `DROP TABLE meta, head, writers, plants, tokens, epochs; DROP FUNCTION plants_append_only; ${kept}`,
  )
  // The first look finds tables of the old version; the connection that is made then brings them up to date.
  await eventually(() => store.log.head())
  await assertKept(t, store)
  t.strictSame(await eventually(() => store.log.append(entries('new'))), ['added'])
  t.equal((await sightings.look(store)).length, 5)
  t.strictSame(sightings.faults, [])
})

tap.test(
  'tables that are put back from within begin an epoch on connections that stay',
  { skip },
  async (t) => {
    const url = await postgres.createDatabase(t)
    const client = await connect(t, url)
    const store = await openLog(t, url)
    const sightings = new Sightings()
    await store.log.append(entries('a'))
    const tables = ['head', 'epochs', 'plants']
    for (const table of tables) await client.query(`CREATE TABLE kept_${table} AS TABLE ${table}`)
    await store.log.append(entries('lost'))
    await sightings.look(store)
    const swap = tables.map((table) => `DROP TABLE ${table}; ALTER TABLE kept_${table} RENAME TO ${table}`)
    await client.query(`BEGIN; ${swap.join(';')}; COMMIT`)
    t.strictSame(await store.log.append(entries('new')), ['added'])
    await sightings.look(store)
    t.strictSame(await namesIn(store), ['a', 'new'])
    t.strictSame(sightings.faults, [])
  },
)

tap.test('a service counts the plants that tables which are put back have no more', { skip }, async (t) => {
  const url = await postgres.createDatabase(t)
  const client = await connect(t, url)
  const service = await startThreads(t, url)
  const add = (name: string) => request(`${service.url}/plants`, { body: { name, tag: '' } })
  await add('a')
  // Of both threads: which one takes a connection is the system's to say.
  const listEverywhere = async () => {
    for (let n = 0; n < 20; n++) await send(service.port, compose({ headers: { Connection: 'close' } }))
  }
  const tables = ['head', 'epochs', 'plants']
  const swap = tables.map((table) => `DROP TABLE ${table}; ALTER TABLE kept_${table} RENAME TO ${table}`)
  for (const [count, lost] of [
    [2, 2],
    [3, 5],
  ] as const) {
    for (const table of tables) await client.query(`CREATE TABLE kept_${table} AS TABLE ${table}`)
    for (let n = 0; n < count; n++) await add(`lost ${n}`)
    await listEverywhere()
    await client.query(`BEGIN; ${swap.join(';')}; COMMIT`)
    t.equal((await request(`${service.url}/plants`)).text, '[{"name":"a","tag":""}]')
    await listEverywhere()
    t.match(await service.metrics.write(), new RegExp(`^plant_store_lost_plants ${lost}$`, 'm'))
    const note = "SELECT value FROM meta WHERE key = 'loss'"
    await until(async () => JSON.parse((await client.query(note)).rows[0]?.value ?? '{}').last === 1 + count)
  }
})

tap.test(
  'sessions on other databases of the server are not taken for services of 1.0.0',
  { skip },
  async (t) => {
    const other = new pg.Client({ connectionString: await postgres.createDatabase(t), application_name: '' })
    await other.connect()
    t.teardown(() => other.end())
    await other.query('BEGIN')
    await other.query('COMMIT')
    const kept = await makeKept(t, 'PostgreSQL')
    await openLog(t, kept.url)
    t.equal(await kept.version(), migrations.length)
  },
)

tap.test('the database of another store is not taken for this one', { skip }, async (t) => {
  const url = await postgres.createDatabase(t)
  const client = await connect(t, url)
  const store = await openLog(t, url)
  await store.log.append(entries('a'))
  await client.query("UPDATE meta SET value = 'another' WHERE key = 'store'")
  await client.query(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()',
  )
  const told = { name: 'StoreUnavailable', message: /another store/ }
  await t.rejects(store.log.append(entries('b')), { ...told, outcome: 'nothing-added' })
  await t.rejects(Promise.resolve(store.log.head()), { ...told, outcome: 'unread' })
})

/** Statements that make another application's tables; `options`: of the URL. */
const foreign: [title: string, statements: string, options?: string][] = [
  [
    'a meta of key and value',
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT); INSERT INTO meta VALUES ('version', '7')",
  ],
  [
    'a meta of other types',
    'CREATE TABLE meta (key INT, value BYTEA, store TEXT); INSERT INTO meta VALUES (1)',
  ],
  ['an empty meta', 'CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)'],
  ['a meta that is a view', "CREATE VIEW meta AS SELECT 'version' AS key, '1' AS value"],
  ...['plants', 'tokens', 'head', 'segments', 'epochs', 'writers'].map((name): [string, string] => [
    `a table ${name}`,
    `CREATE TABLE ${name} (name TEXT)`,
  ]),
  [
    'a meta in another schema of the search path',
    'CREATE SCHEMA theirs; CREATE TABLE theirs.meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)',
    '?options=-csearch_path%3Dpublic,theirs',
  ],
  [
    'a meta in front of a store',
    `${kept}; CREATE SCHEMA theirs; CREATE TABLE theirs.meta AS TABLE meta`,
    '?options=-csearch_path%3Dtheirs,public',
  ],
  ['segments beside a store', `${kept}; CREATE TABLE segments (name TEXT)`],
]

const everything = `
  SELECT schemaname, relname, n_tup_ins::int, n_tup_upd::int, n_tup_del::int FROM pg_stat_user_tables ORDER BY 1, 2`

tap.test('tables of another application are refused, and nothing is written', { skip }, async (t) => {
  for (const [title, statements, options = ''] of foreign) {
    const url = await postgres.createDatabase(t)
    const client = await connect(t, url)
    await client.query(statements)
    await client.query('SELECT pg_stat_force_next_flush()')
    const before = (await client.query(everything)).rows
    const told = { message: /another application's table, not a plant store's/ }
    await t.rejects(openLog(t, url + options), told, title)
    await t.rejects(openView(url + options), told, `${title}, to be read`)
    t.strictSame((await client.query(everything)).rows, before, title)
  }
})

tap.test('new tables of an older store are in the schema of its others', { skip }, async (t) => {
  const url = await postgres.createDatabase(t)
  const client = await connect(t, url)
  await client.query(`CREATE SCHEMA first; ${kept}`)
  await assertKept(t, await openLog(t, `${url}?options=-csearch_path%3Dfirst,public`))
  const { rows } = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'first'")
  t.strictSame(rows, [])
})
