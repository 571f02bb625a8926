// A server that lacks its synchronous standbys may have been deposed, so it is not trusted. These servers write to
// stable storage.
import tap from 'tap'
import '../support/short-limits.ts'
import { until } from '../support/until.ts'

const { add, collectLines, listNames, open, unavailable } = await import('../support/stores.ts')
const { startCluster } = await import('./cluster.ts')
const { eventually } = await import('./logs.ts')

const unread = unavailable('unread')
const timeout = 120_000

tap.test('a replica that only reads does not trust a deposed primary', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 2, synchronous: true })
  const old = cluster.primary
  await old.query(`CREATE ROLE plain LOGIN; GRANT ALL ON SCHEMA public TO plain;
    ALTER ROLE plain SET default_transaction_isolation = serializable`)
  const url = cluster.url().replace('postgres@', 'plain@')
  // The standbys may not know the role yet.
  const reader = await eventually(() => open(t, url))
  t.strictSame(await listNames(reader), [])
  await cluster.failOver()
  const writer = await open(t, url)
  for (let n = 1; n <= 10; n++) {
    t.strictSame(await eventually(() => add(writer, `${n}`)), ['added'])
    const head = await eventually(() => reader.log.head())
    t.equal(head.position, n, `a list requested after plant ${n} was acknowledged contains it`)
  }
  const [row] = await old.query(
    "SELECT pg_is_in_recovery() AS standby, to_regclass('plants')::text AS plants",
  )
  t.strictSame({ ...row }, { standby: false, plants: 'plants' }, 'the old primary is still running')
})

tap.test('a command reads from only one of two standbys', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 2, synchronous: true })
  await add(await open(t, cluster.url()), 'a')
  await cluster.caughtUp()
  await cluster.primary.stop()
  for (let n = 0; n < 4; n++) {
    const reader = await open(t, cluster.url(), { mode: 'read' })
    t.strictSame(await Promise.all([1, 2, 3].map(() => listNames(reader))), [['a'], ['a'], ['a']])
  }
})

tap.test('refuses lists while no synchronous standby streams', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 2, synchronous: true })
  const { logger, find } = collectLines()
  const store = await open(t, cluster.url(), { logger })
  const deposed = {
    ...unread,
    message: /it may no longer be the primary: no standby of synchronous_standby_names is streaming/,
  }
  await add(store, 'a')
  await cluster.standbys[0]?.stop()
  t.strictSame(await listNames(store), ['a'], 'one standby is enough')
  await cluster.standbys[1]?.stop()
  await t.rejects(Promise.resolve(store.log.head()), deposed)
  t.ok(await find(({ msg }) => msg === 'a connection to the database failed'))
  await cluster.standbys[1]?.start()
  t.strictSame(await eventually(() => listNames(store)), ['a'])
  // A role with enough rights sees which standby is synchronous.
  await cluster.primary.query("ALTER SYSTEM SET synchronous_standby_names = 'another'")
  await cluster.primary.query('SELECT pg_reload_conf()')
  await until(async () => !(await Promise.resolve(store.log.head()).catch(() => undefined)))
  await t.rejects(Promise.resolve(store.log.head()), deposed)
})

tap.test('refuses lists and look-ups while a connected standby receives nothing', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 1, synchronous: true })
  const store = await open(t, cluster.url())
  await add(store, 'a')
  t.strictSame(await listNames(store), ['a'])
  t.strictSame(await store.tokens.all(), [])
  const found = await cluster.standbys[0]?.query<{ pid: number }>('SELECT pid FROM pg_stat_wal_receiver')
  const pid = Number(found?.[0]?.pid)
  process.kill(pid, 'SIGSTOP')
  t.teardown(() => process.kill(pid, 'SIGCONT'))
  await until(async () => !(await Promise.resolve(store.log.head()).catch(() => undefined)))
  const [sender] = await cluster.primary.query('SELECT state FROM pg_stat_replication')
  t.match(sender, { state: 'streaming' }, 'the primary has not noticed')
  await t.rejects(Promise.resolve(store.log.head()), unread)
  await t.rejects(store.tokens.find('a'), unread, 'a new primary may have revoked it')
  process.kill(pid, 'SIGCONT')
  t.strictSame(await eventually(() => listNames(store)), ['a'])
})
