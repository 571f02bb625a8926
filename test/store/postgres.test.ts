// PostgreSQL only: refused databases, and the settings of a session.
import { engineOf } from '../../src/store/engines.ts'
import { StoreRefused, StoreUnavailable } from '../../src/store/errors.ts'
import { attemptMs } from '../../src/store/postgres/time-outs.ts'
import { sharedServer, testPostgres } from '../support/engines.ts'
import { connect, passwordRole } from '../support/postgres.ts'
import { add, collectLines, entry, listNames, open, openStore, unavailable } from '../support/stores.ts'
import { ours } from './logs.ts'

const onePlant = [entry('a')]

testPostgres('ignores the statement time-out of the database for long work', async (t, url) => {
  await (await open(t, url)).log.append(onePlant)
  const client = await connect(t, url)
  await client.query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET statement_timeout = '300ms'`)
  const reader = await open(t, url, { mode: 'read' })
  await t.resolves(reader.sql.select(`SELECT pg_sleep(${attemptMs / 1000 + 0.5})`))
})

testPostgres('a late write does not break the turn of the next one', async (t, url) => {
  const store = await open(t, url)
  await add(store, 'a')
  const client = await connect(t, url)
  await client.query('BEGIN; SELECT FROM head FOR UPDATE')
  const first = add(store, 'b')
  const second = store.log.append([entry('late')], { deadlineMs: performance.now() + 600 })
  const third = add(store, 'c')
  await t.rejects(second, unavailable('nothing-added'))
  await client.query('COMMIT')
  t.strictSame(await Promise.all([first, third]), [['added'], ['added']])
  t.strictSame(await listNames(store), ['a', 'b', 'c'])
})

testPostgres('refuses an unusable database in one line without its password', async (t) => {
  const server = await sharedServer()
  const { host } = new URL(server.url())
  await server.query(`CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`)
  await server.query(`CREATE DATABASE restored ENCODING 'EUC_JP' TEMPLATE template0`)
  await (await connect(t, server.url('restored'))).query(ours)
  await server.query('CREATE DATABASE standby')
  await server.query('ALTER DATABASE standby SET default_transaction_read_only = on')
  await server.query('CREATE ROLE crowd LOGIN CONNECTION LIMIT 0; CREATE ROLE stranger LOGIN')
  const refusals: [url: string, message: RegExp][] = [
    [`postgres://${passwordRole}:wr%40ng@${host}/postgres`, /password authentication failed/],
    [`postgres://postgres@${host}/nowhere`, /database "nowhere" does not exist/],
    [`postgres://postgres@127.0.0.1:1,${host}/nowhere`, /database "nowhere" does not exist/],
    [`postgres://postgres:wr%40ng@127.0.0.1:1,127.0.0.1:2/postgres`, /ECONNREFUSED.*:1; .*ECONNREFUSED.*:2/],
    [`postgres://postgres@${host}/standby`, /default_transaction_read_only is on/],
    [`postgres://postgres@${host}/latin`, /LATIN1/],
    [`postgres://postgres@${host}/restored`, /EUC_JP/],
    [`postgres://crowd@${host}/postgres`, /too many connections for role/],
    [
      `postgres://stranger@${host}/postgres`,
      /the role lacks privileges: .* grant it CREATE on the schema .*\(permission denied/,
    ],
    [
      `postgres://postgres@${host}/postgres?options=-csearch_path%3Dnowhere`,
      /no schema has been selected to create in/,
    ],
  ]
  const refuse = async ([url, message]: [string, RegExp]) => {
    const error = await openStore(url).catch((error) => error)
    t.ok(error instanceof StoreRefused, url)
    t.match(error.message, message)
    t.notMatch(error.message, /wr[%@]|\n/)
  }
  await Promise.all(refusals.map(refuse))
})

testPostgres('commits to stable storage whatever the default of the server', async (t, url) => {
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

testPostgres('sets a time-out for reads, and none for commits', async (t, url) => {
  const { sql } = await open(t, url)
  const [row] = await sql.select('SHOW statement_timeout')
  t.strictSame({ ...row }, { statement_timeout: `${attemptMs / 1000}s` })
  await sql.execute("INSERT INTO meta VALUES ('shown', current_setting('statement_timeout'))")
  t.strictSame({ ...(await sql.select("SELECT value FROM meta WHERE key = 'shown'"))[0] }, { value: '0' })
})

testPostgres('overrides settings of a role that would break the service', async (t, url) => {
  const server = await sharedServer()
  await server.query('CREATE ROLE awkward LOGIN SUPERUSER')
  const settings = {
    array_nulls: 'off',
    default_transaction_isolation: 'serializable',
    enable_indexscan: 'off',
    idle_session_timeout: '1s',
    lock_timeout: '1s',
    row_security: 'on',
    statement_timeout: '1s',
    transaction_timeout: '1s',
  }
  for (const [name, value] of Object.entries(settings))
    await server.query(`ALTER ROLE awkward SET ${name} = '${value}'`)
  const { log, sql } = await open(t, url.replace('postgres@', 'awkward@'))
  t.strictSame(await log.append([...onePlant, { item: '"b"', id: 1 }]), ['added', 'added'])
  const kept = (await sql.select('SELECT name, setting, reset_val FROM pg_settings')).filter(
    ({ name, setting, reset_val }) => String(name) in settings && setting === reset_val,
  )
  t.strictSame(kept, [], 'every setting is overridden')
})

testPostgres('commits despite a warning about the collation version', async (t, url) => {
  const name = new URL(url).pathname.slice(1)
  await (await sharedServer()).query(`UPDATE pg_database SET datcollversion = '0' WHERE datname = '${name}'`)
  const { log } = await open(t, url)
  t.strictSame(await log.append(onePlant), ['added'])
})

testPostgres('logs why a session ended', async (t, url) => {
  const { logger, find } = collectLines()
  const { sql } = await open(t, url, { logger })
  const text = 'SELECT pg_terminate_backend(pg_backend_pid()) FROM (VALUES (1)) AS one WHERE $1 = 1'
  const answer = sql.select(text, [1])
  answer.catch(() => {})
  const line = await find(({ msg }) => msg === 'a connection to the database failed')
  t.match(line, { err: { message: /127\.0\.0\.1:\d+\/\w+: terminating connection/ } })
})

testPostgres('refuses parameters of a URL that the driver would ignore silently', async (t) => {
  const faultOf = (url: string) => engineOf(url).findFault?.(url)
  const good = [
    'postgres://a@h/plants?sslmode=verify-full&sslrootcert=ca.pem',
    'postgres://a@h,i:5433/plants?sslmode=disable',
    'postgres:///plants?host=/run/postgresql&user=a&password=b%40c%3Fd&port=5433&options=-c%20search_path%3Da',
    'postgres://a@h/plants?sslmode=require&password=b?c#d',
    'file:data/a%3Fb.db',
  ]
  for (const url of good) t.equal(faultOf(url), undefined, url)
  const bad: [url: string, fault: RegExp][] = [
    ['postgres://a:s3cret@h/plants?sslmod=verify-full', /has the unsupported parameter sslmod; .* sslmode, /],
    ['postgres://a:s3cret@h/plants?application_name=a', /unsupported parameter application_name; /],
    [
      'postgres://a:s3cret@h,i/plants?sslmode=verify_full',
      /unsupported sslmode; .* disable, .*, verify-full$/,
    ],
    ['postgres://a:s3cret@h/plants?channel_binding=require', /unsupported parameter channel_binding; /],
    ['postgres://a@h/plants?p%61ssword=s3cret', /unsupported parameter p%61ssword; /],
    ['postgres://a:s3cret@host:port/plants', /must look like postgres:/],
    ['postgres://a:12?s3cret@h/plants', /must look like postgres:/],
    ['postgres://a@h/plants#?sslmode=verify-full', /must look like postgres:/],
  ]
  for (const [url, fault] of bad) {
    t.match(faultOf(url), fault, url)
    t.notMatch(faultOf(url), /s3cret/, 'without a password')
  }
})

testPostgres('repeats a batch on another session if its own has become read-only', async (t, url) => {
  const { log, sql } = await open(t, url)
  await sql.execute('SET default_transaction_read_only = on')
  t.strictSame(await log.append(onePlant), ['added'])
})

testPostgres('a closed store refuses every call', async (t, url) => {
  const store = await openStore(url)
  const last = store.log.append(onePlant)
  const cut = t.rejects(store.sql.select('SELECT pg_sleep(60)'), unavailable('unread'))
  await store.close()
  await cut
  t.strictSame(await last, ['added'], 'a batch in progress is finished')
  for (const late of [store.log.head(), store.log.append([]), store.sql.select('SELECT 1')])
    await t.rejects(Promise.resolve(late), StoreUnavailable)
})
