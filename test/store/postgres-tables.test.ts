// Databases and tables of another application or another store, and tables that were restored from a copy.
import { readFileSync } from 'node:fs'
import { testPostgres } from '../support/engines.ts'
import { connect } from '../support/postgres.ts'
import { add, listNames, open, openStore, unavailable } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { ours, Sightings } from './logs.ts'

const tables = ['head', 'plants']
const keep = tables.map((table) => `CREATE TABLE kept_${table} AS TABLE ${table}`).join(';')
const putBack = tables.map((table) => `DROP TABLE ${table}; ALTER TABLE kept_${table} RENAME TO ${table}`)
const endOthers =
  'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()'

testPostgres('follows tables that are restored in place, and counts each loss', async (t, url) => {
  const client = await connect(t, url)
  let lost = 0
  const store = await open(t, url, { onLoss: () => lost++ })
  await add(store, 'a')
  t.strictSame(await listNames(store), ['a'])
  const sightings = new Sightings()
  for (const times of [1, 2]) {
    await client.query(keep)
    await add(store, 'lost')
    await sightings.look(store)
    await client.query(`BEGIN; ${putBack.join(';')}; COMMIT`)
    // Several calls detect it at the same time.
    await Promise.all([store.log.head(), store.log.head([1]), store.log.head()])
    t.strictSame(await listNames(store), ['a'])
    t.equal(lost, times, 'each loss once')
  }
  t.strictSame(await add(store, 'new'), ['added'])
  await sightings.look(store)
  t.strictSame(await listNames(store), ['a', 'new'])
  t.strictSame(sightings.faults, [])
})

testPostgres('does not read a page of a log that has changed', async (t, url) => {
  const client = await connect(t, url)
  const store = await open(t, url)
  await add(store, 'a')
  await client.query(keep)
  await add(store, 'lost 1', 'lost 2')
  const { position, mark, markOf } = await store.log.head([1, 2, 4])
  t.strictSame([position, markOf(0), markOf(2), markOf(4)], [3, '', mark, undefined])
  await client.query(`BEGIN; ${putBack.join(';')}; COMMIT`)
  const unread = unavailable('unread')
  await t.rejects(Promise.resolve(store.log.read(0, 3, mark)), unread, 'plants are missing')
  await add(store, 'new 1', 'new 2')
  await t.rejects(Promise.resolve(store.log.read(0, 3, mark)), unread, 'the plants were replaced')
  const rest = await store.log.read(0, 1, String(markOf(1)))
  t.equal(String(rest), '[{"name":"a","tag":""}]', 'the remaining part is unchanged')
  const { mark: last } = await store.log.head()
  await client.query('SET session_replication_role = replica; DELETE FROM plants WHERE position = 2')
  await t.rejects(Promise.resolve(store.log.read(0, 3, last)), unread, 'a plant in the middle is missing')
})

testPostgres('adds nothing if a trigger of the administrator skips a plant', async (t, url) => {
  const client = await connect(t, url)
  const store = await open(t, url)
  await add(store, 'a')
  await client.query(`CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RETURN CASE WHEN NEW.item NOT LIKE '%skip%' THEN NEW END; END $$;
    CREATE TRIGGER skip BEFORE INSERT ON plants FOR EACH ROW EXECUTE FUNCTION skip()`)
  await t.rejects(add(store, 'b', 'skip', 'c'), {
    ...unavailable('nothing-added'),
    message: /a trigger skips/,
  })
  t.strictSame(await add(store, 'd'), ['added'])
  await client.query('DELETE FROM head')
  await t.rejects(add(store, 'e'), unavailable('nothing-added'), 'without the row to lock')
  t.strictSame(await listNames(store), ['a', 'd'])
})

testPostgres('refuses the database of another store', async (t, url) => {
  const client = await connect(t, url)
  const store = await open(t, url)
  await add(store, 'a')
  await client.query("UPDATE meta SET value = 'another' WHERE key = 'store'")
  await client.query(endOthers)
  const told = { name: 'StoreUnavailable', message: /a different store/ }
  await t.rejects(add(store, 'b'), { ...told, outcome: 'nothing-added' })
  await t.rejects(Promise.resolve(store.log.head()), { ...told, outcome: 'unread' })
})

testPostgres('stays in the schema of its store when the search path changes', async (t, url) => {
  const client = await connect(t, url)
  const store = await open(t, url)
  await add(store, 'a')
  await client.query(`CREATE SCHEMA restored; SET search_path = restored; ${ours}`)
  await client.query(`UPDATE meta SET value = '${store.id}' WHERE key = 'store'`)
  await client.query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET search_path = restored`)
  await client.query(endOthers)
  t.strictSame(await add(store, 'b'), ['added'])
  t.strictSame(await listNames(store), ['a', 'b'])
  t.strictSame(await listNames(await open(t, url)), [], 'a later process follows the search path')
})

testPostgres('stays in its schema when a copy appears earlier on the search path', async (t, url) => {
  const store = await open(t, url)
  await add(store, 'a')
  await (await connect(t, url)).query(`CREATE SCHEMA postgres; SET search_path = postgres; ${ours}`)
  t.strictSame(await add(store, 'b'), ['added'])
  t.strictSame(await listNames(store), ['a', 'b'])
})

testPostgres('a command that reads waits for a table that is locked for long', async (t, url) => {
  const [client, watcher] = [await connect(t, url), await connect(t, url)]
  await (await openStore(url)).close()
  const store = await open(t, url, { mode: 'read' })
  await client.query('BEGIN; LOCK TABLE plants IN ACCESS EXCLUSIVE MODE')
  const head = Promise.resolve(store.log.head())
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'
    AND datname = current_database() AND clock_timestamp() - query_start > interval '2 s'`
  await until(async () => (await watcher.query(waiting)).rows.length > 0)
  await client.query('COMMIT')
  t.match(await head, { position: 0 })
})

/** Statements that make another application's tables; `options`: of the URL. */
const foreign: [title: string, statements: string, options?: string][] = [
  [
    'a meta of key and value',
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT); INSERT INTO meta VALUES ('version', '7')",
  ],
  ['another meta', 'CREATE TABLE meta (key INT, value BYTEA, store TEXT); INSERT INTO meta VALUES (1)'],
  ['an empty meta', 'CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)'],
  ['a meta that is a view', "CREATE VIEW meta AS SELECT 'version' AS key, '1' AS value"],
  ...['plants', 'tokens', 'head'].map((name): [string, string] => [
    `a table ${name}`,
    `CREATE TABLE ${name} (name TEXT)`,
  ]),
  [
    'a meta in another schema of the search path',
    'CREATE SCHEMA theirs; CREATE TABLE theirs.meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)',
    '?options=-csearch_path%3Dpublic,theirs',
  ],
  [
    'a meta before a store on the search path',
    `${ours}; CREATE SCHEMA theirs; CREATE TABLE theirs.meta AS TABLE meta`,
    '?options=-csearch_path%3Dtheirs,public',
  ],
  ['a store that lacks a table', `${ours}; DROP TABLE head`],
]

const everything = `
  SELECT schemaname, relname, n_tup_ins::int, n_tup_upd::int, n_tup_del::int FROM pg_stat_user_tables ORDER BY 1, 2`

/** Tests that both ways to open a database with these tables are refused, and write nothing. */
function testRefusal(title: string, statements: string, message: RegExp, options = ''): void {
  testPostgres(`refuses, and leaves unchanged, ${title}`, async (t, url) => {
    const client = await connect(t, url)
    await client.query(statements)
    await client.query('SELECT pg_stat_force_next_flush()')
    const before = (await client.query(everything)).rows
    for (const mode of ['read', 'write'] as const)
      await t.rejects(open(t, url + options, { mode }), { message }, mode)
    t.strictSame((await client.query(everything)).rows, before)
  })
}

const fixture = readFileSync(new URL('../fixtures/postgres-1.0.0.sql', import.meta.url), 'utf8')
const another = /belongs to another application/
const earlier = /created by a version before 1\.0\.0: export it with that version, then import it/
for (const statements of [fixture, ours.replace("'step'", "'schema'")])
  testRefusal('a database made before 1.0.0', statements, earlier)
for (const [title, statements, options] of foreign)
  testRefusal(`tables of another application: ${title}`, statements, another, options)
testRefusal(
  'an unlogged table',
  `${ours}; ALTER TABLE plants SET UNLOGGED`,
  /a crash would empty its table plants/,
)
