// What is particular to PostgreSQL: which databases are refused and how, and what a session is made to promise.
import pino from 'pino'
import tap, { type Test } from 'tap'
import { openStore } from '../src/store/open.ts'
import { type Store, StoreRefused, StoreUnavailable } from '../src/store/store.ts'
import { type Engine, engines, sharedServer } from './support/engines.ts'
import { passwordRole } from './support/postgres.ts'

const postgres = engines.find(({ name }) => name === 'PostgreSQL') as Engine
const logger = pino({ level: 'silent' })
const onePlant = [{ item: '"a"', id: undefined }]

async function open(t: Test, url: string): Promise<Store> {
  const store = await openStore(url, { logger })
  t.teardown(() => store.close())
  return store
}

tap.test('a database that cannot be used is refused in one line without the password', async (t) => {
  const server = await sharedServer()
  const { host } = new URL(server.url())
  await server.query(`CREATE ROLE ${passwordRole} LOGIN PASSWORD 'right'`)
  await server.query(`CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`)
  await server.query('CREATE DATABASE standby')
  await server.query('ALTER DATABASE standby SET default_transaction_read_only = on')
  await server.query('CREATE DATABASE foreigner')
  await server.query('CREATE TABLE plants (name TEXT)', 'foreigner')
  const refusals: [url: string, message: RegExp][] = [
    [`postgres://${passwordRole}:wr%40ng@${host}/postgres`, /password authentication failed/],
    [`postgres://postgres@${host}/nowhere`, /database "nowhere" does not exist/],
    [`postgres://postgres@127.0.0.1:1,${host}/nowhere`, /database "nowhere" does not exist/],
    [`postgres://postgres:wr%40ng@127.0.0.1:1,127.0.0.1:2/postgres`, /ECONNREFUSED.*:1; .*ECONNREFUSED.*:2/],
    [`postgres://postgres@${host}/standby`, /takes no/],
    [`postgres://postgres@${host}/latin`, /LATIN1/],
    [`postgres://postgres@${host}/foreigner`, /"plants" already exists/],
    ['postgres://gardener:wr%40ng@host:port/plants', /is not like postgres:/],
  ]
  const refuse = async ([url, message]: [string, RegExp]) => {
    const error = await openStore(url, { logger }).catch((error) => error)
    t.ok(error instanceof StoreRefused, url)
    t.match(error.message, message)
    t.notMatch(error.message, /wr[%@]|\n/)
  }
  await Promise.all(refusals.map(refuse))
})

tap.test('a database is opened by an older version while a newer one that is compatible runs', async (t) => {
  const url = await postgres.createDatabase(t)
  const store = await open(t, url)
  await store.sql.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
  const older = await open(t, url)
  t.strictSame(await older.log.append(onePlant), ['added'])
  t.strictSame(
    { ...(await older.sql.select("SELECT value FROM meta WHERE key = 'version'"))[0] },
    { value: '99' },
  )
})

tap.test('a commit waits for stable storage, whatever the default of the server is', async (t) => {
  const url = await postgres.createDatabase(t)
  const database = new URL(url).pathname.slice(1)
  const server = await sharedServer()
  for (const [level, expected] of [
    ['off', 'on'],
    ['remote_write', 'on'],
    ['remote_apply', 'remote_apply'],
  ]) {
    await server.query(`ALTER DATABASE ${database} SET synchronous_commit = ${level}`)
    const { sql } = await open(t, url)
    t.strictSame({ ...(await sql.select('SHOW synchronous_commit'))[0] }, { synchronous_commit: expected })
  }
})

tap.test('a batch that the server refuses when it is written is known not to be there', async (t) => {
  const { log } = await open(t, await postgres.createDatabase(t))
  const impossible = log.append([...onePlant, { item: '"\0"', id: 1 }])
  await t.rejects(impossible, { name: 'StoreUnavailable', outcome: 'nothing-added' })
  t.equal((await log.head()).position, 0)
  t.strictSame(await log.append(onePlant), ['added'])
})

tap.test('a store answers nothing any more once it is closed', async (t) => {
  const store = await openStore(await postgres.createDatabase(t), { logger })
  const last = store.log.append(onePlant)
  const cut = t.rejects(store.sql.select('SELECT pg_sleep(60)'), {
    name: 'StoreUnavailable',
    outcome: 'unread',
  })
  await store.close()
  await cut
  t.strictSame(await last, ['added'], 'a batch that was under way is finished')
  for (const late of [store.log.head(), store.log.append([]), store.sql.select('SELECT 1')])
    await t.rejects(Promise.resolve(late), StoreUnavailable)
})
