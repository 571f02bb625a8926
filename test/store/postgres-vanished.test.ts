// Clients and servers that stop responding: locks end soon after their holder vanishes, and every wait ends.
import type pg from 'pg'
import tap, { type Test } from 'tap'
import { assertWithin } from '../support/full.ts'
import type { Cluster } from './cluster.ts'
import '../support/short-limits.ts'
import { until } from '../support/until.ts'

const { storeLimitMs } = await import('../../src/store/in-time.ts')
const { vanishedMs } = await import('../../src/store/postgres/time-outs.ts')
const { add, entry, listNames, open, openStore, unavailable } = await import('../support/stores.ts')
const { findEngine, sharedServer } = await import('../support/engines.ts')
const { connect } = await import('../support/postgres.ts')
const { startCluster } = await import('./cluster.ts')
const { eventually } = await import('./logs.ts')
const { startRelay } = await import('./relay.ts')

const { engine: postgres, skip } = findEngine('PostgreSQL')
/** The tests mostly wait, so several run at a time. */
tap.jobs = 3
const promisedMs = 5000

const it = (title: string, body: (t: Test) => unknown) =>
  tap.test(title, { skip, timeout: 60_000, buffered: true }, body)

/** Measures how long a promise takes to settle. */
async function settledAfter(promise: Promise<unknown>): Promise<number> {
  const start = performance.now()
  await promise.catch(() => {})
  return performance.now() - start
}

async function holdHead(t: Test, url: string): Promise<pg.Client> {
  const client = await connect(t, url)
  await client.query('BEGIN; SELECT FROM head FOR UPDATE')
  return client
}

it('a replica that vanishes while it holds the lock does not block the others', async (t) => {
  const direct = await postgres.createDatabase(t)
  const { relay, url } = await startRelay(t, direct)
  const [vanishing, other] = [await open(t, url), await open(t, direct)]
  await add(other, 'a')
  const vanished = relay.breakAt('COMMIT\0', 'vanish')
  const lost = add(vanishing, 'b')
  await vanished
  const waitedMs = await settledAfter(eventually(() => add(other, 'c')))
  assertWithin(t, waitedMs, promisedMs, 'the other replica continues')
  t.strictSame(await lost, ['added'], 'a host that returns finishes its batch')
  t.strictSame((await listNames(other)).toSorted(), ['a', 'b', 'c'], 'each plant is in the log once')
})

it('the server ends the session of a silent client', async (t) => {
  const { sql } = await open(t, await postgres.createDatabase(t))
  const rows = await sql.select(
    `SELECT name, setting::int AS value FROM pg_settings WHERE name IN
      ('idle_in_transaction_session_timeout', 'tcp_user_timeout', 'tcp_keepalives_idle',
       'tcp_keepalives_interval', 'tcp_keepalives_count')`,
  )
  t.equal(rows.length, 5)
  for (const { name, value } of rows)
    t.ok(Number(value) > 0 && Number(value) <= vanishedMs, `${name} is ${value}`)
  const value = (setting: string) => Number(rows.find(({ name }) => name === setting)?.value)
  const detectedS =
    value('tcp_keepalives_idle') + value('tcp_keepalives_interval') * value('tcp_keepalives_count')
  assertWithin(t, detectedS * 1000, promisedMs, 'the server detects a host without power')
})

it('answers in time if the server is frozen', async (t) => {
  const { relay, url } = await startRelay(t, await postgres.createDatabase(t))
  const store = await open(t, url)
  await eventually(() => add(store, 'a'))
  await listNames(store)
  relay.freeze()
  const all = [
    add(store, 'b'),
    add(store, 'c'),
    Promise.resolve(store.log.head()),
    Promise.resolve(store.log.read(0, 1, '')),
    store.sql.select('SELECT 1'),
    store.log.append([]),
  ]
  const times = await Promise.all(all.map(settledAfter))
  assertWithin(t, Math.max(...times), promisedMs, 'every call')
  const refused = { name: 'StoreUnavailable', message: /127\.0\.0\.1|timed out/ }
  for (const answer of all) await t.rejects(Promise.resolve<unknown>(answer), refused)
  relay.thaw()
  t.strictSame(await add(store, 'd'), ['added'], 'the store recovers by itself')
})

/** The sessions of services on the primary. */
async function countSessions({ primary }: Cluster): Promise<number> {
  const rows = await primary.query("SELECT FROM pg_stat_activity WHERE application_name LIKE 'plant-store%'")
  return rows.length
}

it('opens few sessions while the standbys do not answer', async (t) => {
  const cluster = await startCluster(t, { standbys: 1, synchronous: true })
  const store = await open(t, cluster.url())
  const note = () => store.sql.execute("UPDATE meta SET key = key WHERE key = 'store'", [], true)
  const useAll = () => [add(store, 'a'), store.log.head(), store.sql.select('SELECT 1'), store.log.append([])]
  await eventually(() => Promise.all([...useAll(), note()]))
  await listNames(store)
  const before = await countSessions(cluster)
  for (const standby of cluster.standbys) standby.signal('SIGSTOP')
  for (let round = 0; round < 4; round++) {
    await Promise.allSettled(useAll())
    t.equal(await eventually(note), 1, 'waits for no standby')
    const more = (await countSessions(cluster)) - before
    t.ok(more <= 3, `${more} more sessions`)
  }
  for (const standby of cluster.standbys) standby.signal('SIGCONT')
  t.match(await eventually(() => listNames(store)), ['a'])
  t.strictSame(await eventually(() => add(store, 'c')), ['added'])
  await until(async () => (await countSessions(cluster)) <= before)
})

it('a command that reads gives up on a frozen server', async (t) => {
  const { relay, url } = await startRelay(t, await postgres.createDatabase(t))
  relay.freeze()
  const answer = openStore(url, { mode: 'read' })
  assertWithin(t, await settledAfter(answer), promisedMs, 'it is told')
  const message = /cannot use the database: 127\.0\.0\.1:\d+\/\w+: no server was ready within/
  await t.rejects(answer, { message })
})

it('a batch gives up at its deadline while another session holds the lock', async (t) => {
  const url = await postgres.createDatabase(t)
  const store = await open(t, url)
  await add(store, 'a')
  const holder = await holdHead(t, url)
  // The first batch has the full time limit, the others have less.
  const first = add(store, 'b')
  const order: string[] = []
  const batches = [0.5, 0.25, 0.1, -0.001].map(async (share) => {
    const leftMs = share * storeLimitMs
    const answer = store.log.append([entry('late')], { deadlineMs: performance.now() + leftMs })
    await t.rejects(answer, unavailable('nothing-added'), `${leftMs} ms`)
    order.push(`${share}`)
  })
  first.catch(() => order.push('first'))
  const queued = store.sql.execute('DELETE FROM tokens')
  const waitedMs = settledAfter(queued)
  t.strictSame(await listNames(store), ['a'], 'readers wait for no lock')
  await t.rejects(first, unavailable('nothing-added'))
  await Promise.all(batches)
  await t.rejects(queued, unavailable('nothing-added'))
  assertWithin(t, await waitedMs, promisedMs, 'what is queued is also refused in time')
  t.strictSame(order, ['-0.001', '0.1', '0.25', '0.5', 'first'])
  await holder.query('COMMIT')
  t.strictSame(await add(store, 'd'), ['added'])
  t.strictSame(await listNames(store), ['a', 'd'])
})

it('closing waits for a blocked batch, but not for long', async (t) => {
  const url = await postgres.createDatabase(t)
  const store = await open(t, url)
  await holdHead(t, url)
  const answer = add(store, 'a')
  answer.catch(() => {})
  assertWithin(t, await settledAfter(store.close()), promisedMs, 'closed')
  await t.rejects(answer, unavailable('nothing-added'))
  const { query } = await operate(url)
  const text = "SELECT FROM pg_stat_activity WHERE datname = '$name' AND state <> 'idle in transaction'"
  await until(async () => (await query(text)).length === 0)
})

/** An operator's queries to the server of a database, with its name. */
async function operate(url: string) {
  const server = await sharedServer()
  const name = new URL(url).pathname.slice(1)
  const query = (text: string) => server.query(text.replaceAll('$name', name))
  return {
    query,
    count: async () => (await query("SELECT FROM pg_stat_activity WHERE datname = '$name'")).length,
  }
}

it('failed attempts leave no session open', async (t) => {
  const url = await postgres.createDatabase(t)
  const store = await open(t, url)
  const { query, count } = await operate(url)
  await store.log.head()
  await query('ALTER DATABASE $name SET default_transaction_read_only = on')
  await query("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '$name'")
  await t.rejects(async () => store.log.head(), { message: /default_transaction_read_only is on/ })
  await until(async () => (await count()) === 0)
})

it('reads a head that may be ahead of the standbys on a new session, and closes the old one', async (t) => {
  const direct = await postgres.createDatabase(t)
  const { relay, url } = await startRelay(t, direct)
  const store = await open(t, url)
  const { count } = await operate(direct)
  await store.log.head()
  const before = await count()
  const broken = relay.breakAt('COMMIT\0', 'after')
  t.strictSame(await eventually(() => add(store, 'a')), ['added'])
  await broken
  t.ok((await store.log.head()).position > 0)
  await until(async () => (await count()) <= before)
})
