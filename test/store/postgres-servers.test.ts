// Which server a process trusts. Whatever the servers of a cluster do, reads show one history of the log, and a name
// (position and mark) never identifies two lists. These servers write to stable storage.
import { rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import tap from 'tap'
import { failureOf, isFinal, pickFailure } from '../../src/store/postgres/failures.ts'
import { forgetCluster, type PostgresServer } from '../support/postgres.ts'
import '../support/short-limits.ts'
import { until } from '../support/until.ts'

const { createToken } = await import('../../src/tokens/tokens.ts')
const { add, collectLines, entry, listNames, open, openStore, silent, unavailable } = await import(
  '../support/stores.ts'
)
const { startCluster } = await import('./cluster.ts')
const { eventually, Sightings } = await import('./logs.ts')
const { startRelay } = await import('./relay.ts')
const { makeHeadReader } = await import('../../src/store/postgres/reader.ts')
const { leaseMs, makeLease } = await import('../../src/store/postgres/session.ts')

const unread = unavailable('unread')
const timeout = 120_000

tap.test('a refusal by one server is final only if no other server may accept a retry', async (t) => {
  const refusal = failureOf(
    'a',
    Object.assign(new pg.DatabaseError('no entry', 8, 'error'), { code: '28000' }),
  )
  const picked = pickFailure([refusal, new Error('b: ECONNREFUSED')])
  t.strictSame([picked.message, isFinal(picked)], ['a: no entry; b: ECONNREFUSED', false])
  t.equal(pickFailure([refusal, refusal]), refusal)
})

tap.test('a head waits for another barrier if that in progress began more than a second ago', async (t) => {
  const barriers: (() => void)[] = []
  const passBarrier = makeLease(() => new Promise<void>((resolve) => barriers.push(resolve)))
  const query = async () => ({ rows: [{ position: 0, mark: '', doubt: null }] })
  void passBarrier()
  await sleep(leaseMs + 50)
  const head = makeHeadReader({ mode: 'write', logger: silent })({ passBarrier, query } as never, [])
  barriers[0]?.()
  await until(() => barriers.length === 2)
  barriers[1]?.()
  t.match(await head, { position: 0 })
})

tap.test('does not read from an old primary that is still running', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 2, synchronous: true })
  const relays = await Promise.all(cluster.ports.map((port) => startRelay(t, `postgres://127.0.0.1:${port}`)))
  const hosts = relays.map(({ port }) => `127.0.0.1:${port}`)
  const store = await open(t, `postgres://postgres@${hosts}/postgres`)
  const first = Array.from({ length: 10 }, (_, n) => `first ${n}`)
  await add(store, ...first)
  // Now every connection for reads leads to the old primary.
  await Promise.all(Array.from({ length: 6 }, () => listNames(store)))
  t.strictSame(await listNames(store), first)
  const sightings = new Sightings()
  const before = await sightings.look(store)
  await createToken(store.tokens, { name: 'gardener' })
  const id = String((await store.tokens.all())[0]?.id)
  t.match(await store.tokens.find(id), { revokedAt: null })

  const old = cluster.primary
  const [{ relay }] = relays as [(typeof relays)[0]]
  relay.freeze()
  await cluster.failOver()
  await eventually(() => store.log.append([entry('second', 1)]))
  t.ok(await store.tokens.revoke(id, 1))
  relay.thaw()
  const [row] = await old.query('SELECT max(position) AS last FROM plants')
  t.equal(row?.last, '10', 'the old primary is still running')

  t.match(await store.tokens.find(id), { revokedAt: 1 }, 'tokens are not read from the old primary either')
  const all = [...first, 'second']
  const lists = await Promise.all(Array.from({ length: 60 }, () => listNames(store).catch(() => all)))
  for (const names of lists) t.strictSame(names, all)
  t.strictSame(await listNames(store), all, 'the store recovers')
  const after = await sightings.look(store)
  t.strictSame(after.slice(0, first.length), before, 'a fail-over without a loss keeps all names')
  t.not(after.at(-1), before.at(-1), 'each batch has its own mark')
  t.strictSame(sightings.faults, [])
})

tap.test('gives new names to lists of a log that lost plants and grew again', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 1, synchronous: false })
  const { logger, lines } = collectLines()
  let lost = 0
  const told = { logger, onLoss: () => lost++ }
  const stores = [await open(t, cluster.url(), told), await open(t, cluster.url())] as const
  const sightings = new Sightings()
  const lookAll = async () => {
    const marks = []
    for (const store of stores) marks.push(await eventually(() => sightings.look(store)))
    t.strictSame(marks[0], marks[1], 'both replicas see the same marks')
    return marks[0] as string[]
  }
  await add(stores[0], 'a', 'b', 'c')
  await cluster.caughtUp()
  await cluster.standbys[0]?.stop()
  await add(stores[1], 'lost 1', 'lost 2')
  const before = await lookAll()
  t.equal(before.length, 5)

  cluster.primary.kill()
  await cluster.standbys[0]?.start()
  await cluster.failOver()
  await eventually(() => Promise.all([1, 2].map(() => stores[0].log.head())))
  t.strictSame((await lookAll()).length, 3, 'the shorter log is served')
  const errors = lines.filter(({ level }) => Number(level) >= 50)
  t.match(errors, [{ seen: 5, now: 3, msg: /^the database has lost plants: plant 5 .* now ends at 3$/ }])
  t.strictSame([errors.length, lost], [1, 1], 'the loss is logged once')
  await eventually(() => add(stores[1], 'd'))
  const short = await lookAll()
  t.equal(lost, 1, 'the loss is not logged again')
  await add(stores[0], 'e', 'f')
  const after = await lookAll()
  t.strictSame(after.slice(0, 3), before.slice(0, 3), 'the remaining part keeps its names')
  t.strictSame(short, after.slice(0, 4))
  for (const position of [4, 5]) t.not(after[position - 1], before[position - 1])
  t.strictSame(await listNames(stores[0]), ['a', 'b', 'c', 'd', 'e', 'f'])
  t.strictSame(sightings.faults, [])
})

tap.test('follows a cold backup that is restored while two replicas run', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 0, synchronous: false })
  const { logger, lines } = collectLines()
  const stores = [await open(t, cluster.url(), { logger }), await open(t, cluster.url())] as const
  const sightings = new Sightings()
  await add(stores[0], 'a')
  await cluster.primary.stop()
  cluster.primary.save()
  await cluster.primary.start()
  await eventually(() => add(stores[0], 'lost 1'))
  await eventually(() => add(stores[1], 'lost 2', 'lost 3'))
  for (const store of stores) t.equal((await eventually(() => sightings.look(store))).length, 4)
  const reader = await open(t, cluster.url(), { logger, mode: 'read' })

  await cluster.primary.stop()
  cluster.primary.restore()
  await cluster.primary.start()
  await eventually(() => add(stores[1], 'b', 'c', 'd', 'e'))
  const marks = []
  for (const store of stores) marks.push(await eventually(() => sightings.look(store)))
  t.strictSame(marks[0], marks[1])
  for (const store of stores) t.strictSame(await listNames(store), ['a', 'b', 'c', 'd', 'e'])
  t.strictSame(sightings.faults, [])
  const refused = { ...unread, message: /is not the server that this command was reading from/ }
  await t.rejects(reader.plants(0, 9, 9), refused, 'a copy never continues from another server')
  const losses = lines.filter(({ msg }) => msg.startsWith('the database has lost plants'))
  t.match(losses, [{ seen: 4, now: 5 }], 'the loss is logged even if the log is longer by then')
  t.equal(losses.length, 1)
})

tap.test('neither shows nor acknowledges a plant that no standby has', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 1, synchronous: true })
  const store = await open(t, cluster.url())
  const standby = cluster.standbys[0] as PostgresServer
  await add(store, 'a')

  t.comment('after a restart of the primary')
  await standby.stop()
  await t.rejects(add(store, 'b'), unavailable('unknown'))
  await cluster.primary.crash()
  const [row] = await cluster.primary.query<{ last: string }>('SELECT max(position) AS last FROM plants')
  t.equal(row?.last, '2', 'the server itself has the plant')
  await t.rejects(Promise.resolve(store.log.head()), unread)
  await t.rejects(store.log.append([]), { name: 'StoreUnavailable' })
  await standby.start()
  const listed = await eventually(() => listNames(store))
  t.strictSame(listed, ['a', 'b'])
  await eventually(() => store.log.append([]))

  for (const cancel of ['pg_cancel_backend', 'pg_terminate_backend']) {
    t.comment(`after ${cancel}`)
    // The reader of heads now trusts the server for a second.
    await sleep(1100)
    await store.log.head()
    standby.signal('SIGSTOP')
    let settled = false
    const retried = [entry(cancel, listed.length)]
    const answer = store.log.append(retried).then(
      () => (settled = true),
      () => {},
    )
    const pid = await cluster.waitingSession()
    await cluster.primary.query(`SELECT ${cancel}(${pid})`)
    // The store opens another connection.
    await cluster.waitingSession([pid])
    t.notOk(settled, 'the addition is not acknowledged yet')
    listed.push(cancel)
    let head: number | undefined
    const looked = eventually(() => store.log.head()).then(({ position }) => (head = position))
    // Each check of the test takes longer than one of the store on an open connection.
    for (let look = 0; look < 3; look++) {
      const rows = await cluster.primary.query('SELECT FROM plants')
      t.equal(rows.length, listed.length, 'the server has the plant')
      t.equal(head, undefined, 'no list shows it')
    }
    standby.signal('SIGCONT')
    await Promise.all([answer, looked])
    t.strictSame(await eventually(() => store.log.append(retried)), ['replayed'], 'a retry finds the plant')
  }
  t.strictSame(await listNames(store), listed, 'each plant is in the log once')
})

tap.test('a store is missing if only the primary lacks it, beside standbys', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 1, synchronous: false })
  await t.rejects(open(t, cluster.url(), { mode: 'read' }), {
    message: /does not contain a plant store/,
    isMissing: true,
  })
})

tap.test('a command reads from a standby beside a server that refuses it', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 1, synchronous: false })
  await add(await open(t, cluster.url()), 'a')
  await cluster.caughtUp()
  cluster.primary.write('pg_hba.conf', 'host all all 127.0.0.1/32 reject\n')
  cluster.primary.signal('SIGHUP')
  await until(() =>
    cluster.primary.query('SELECT 1').then(
      () => false,
      () => true,
    ),
  )
  t.strictSame(await listNames(await open(t, cluster.url(), { mode: 'read' })), ['a'])
})

tap.test('does not return to a primary that was deposed and came back', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 1, synchronous: false })
  const [store, other] = [await open(t, cluster.url()), await open(t, cluster.url())]
  await add(store, 'a')
  await other.log.append([])
  t.strictSame(await listNames(other), ['a'])
  await cluster.caughtUp()
  const deposed = cluster.primary
  deposed.signal('SIGSTOP')
  await cluster.failOver()
  t.strictSame(await eventually(() => add(store, 'b')), ['added'])
  deposed.signal('SIGCONT')
  // Its connections still lead to the old primary, which responds.
  await until(async () => (await eventually(() => listNames(other))).length === 2)
  t.strictSame(await eventually(() => other.log.append([entry('c', 1)])), ['added'])
  t.strictSame(await eventually(() => listNames(store)), ['a', 'b', 'c'])
  for (let n = 0; n < 5; n++) t.strictSame(await listNames(await open(t, cluster.url())), ['a', 'b', 'c'])
  await cluster.primary.stop()
  const message = /was deposed: it is on timeline 00000001/
  await t.rejects(Promise.resolve(store.log.head()), { ...unread, message })
  await t.rejects(add(store, 'lost'), unavailable('nothing-added'))
  await cluster.primary.start()
  t.strictSame(await eventually(() => listNames(store)), ['a', 'b', 'c'])
  t.strictSame(await deposed.query('SELECT max(position)::int AS last FROM plants'), [{ last: 1 }])
})

tap.test('switches from a deposed primary to a distant one', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 1, synchronous: false })
  const { relay, port } = await startRelay(t, String(cluster.standbys[0]?.url()))
  // Opening a session takes four round trips, which is longer than a check of the timelines is awaited.
  relay.delayMs = leaseMs / 6
  const url = `postgres://postgres@127.0.0.1:${cluster.primary.port},127.0.0.1:${port}/postgres`
  const store = await open(t, url)
  await add(store, 'a')
  await cluster.caughtUp()
  const old = cluster.primary
  await cluster.failOver()
  const find = () => cluster.primary.query("SELECT FROM plants WHERE item LIKE '%more%'")
  await add(await open(t, url), 'more')
  t.equal((await find()).length, 1, 'a start uses the new primary')
  await until(async () => {
    await eventually(() => add(store, 'more'))
    return (await find()).length > 1
  })
  old.kill()
  const hanging = createServer((socket) => socket.write('R\0\0\0\x08\0\0\0\0')).listen(old.port, '127.0.0.1')
  t.teardown(() => hanging.close())
  void relay.breakAt('COMMIT\0', 'before')
  const outcomes = await add(store, 'last')
  t.strictSame(outcomes, ['added'], 'another server that hangs in a handshake does not matter')
})

tap.test('prefers a primary to a lagging standby, and refuses a second primary', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 1, synchronous: false })
  const standby = cluster.standbys[0] as PostgresServer
  const { relay, port } = await startRelay(t, cluster.primary.url())
  const url = `postgres://postgres@127.0.0.1:${port},127.0.0.1:${standby.port}/postgres`
  const store = await open(t, url)
  await add(store, 'a')
  await cluster.caughtUp()
  await standby.query('SELECT pg_wal_replay_pause()')
  await add(store, 'b')
  for (let n = 0; n < 5; n++) {
    void relay.breakAt('pg_backend_pid', 'before')
    t.strictSame(await listNames(await open(t, url, { mode: 'read' })), ['a', 'b'], 'at the second attempt')
  }
  await standby.stop()
  rmSync(join(standby.data, 'standby.signal'))
  await standby.start()
  for (let n = 0; n < 5; n++) {
    void relay.breakAt('COMMIT\0', 'before')
    t.strictSame(await add(store, 'c'), ['added'])
    await t.rejects(openStore(url), { message: /are both primaries on timeline 00000001/ })
  }
  t.equal((await listNames(store)).length, 7)
  t.equal((await standby.query('SELECT FROM plants')).length, 2)
})

tap.test('creates a store only if no server can have one', { timeout }, async (t) => {
  const one = await startCluster(t, { standbys: 0, synchronous: false })
  forgetCluster()
  const other = await startCluster(t, { standbys: 0, synchronous: false })
  await add(await open(t, one.url()), 'a')
  const { relay, port } = await startRelay(t, one.url())
  const url = `postgres://postgres@127.0.0.1:${other.ports},127.0.0.1:${port}/postgres`
  relay.freeze()
  await t.rejects(openStore(url), { message: /no server was ready within/ })
  relay.thaw()
  for (let n = 0; n < 5; n++) t.strictSame(await listNames(await open(t, url)), ['a'])
  t.match(await other.primary.query("SELECT to_regclass('plants') AS plants"), [{ plants: null }])
  await one.primary.stop()
  const reason =
    /does not contain a plant store, and one is created only if all other servers are standbys .*; /
  await t.rejects(open(t, url), { message: reason })
  await one.primary.start()
  await one.primary.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
  await t.rejects(open(t, url), { message: reason }, 'two servers that may each become the store')
  const twice = `postgres://postgres@127.0.0.1:${one.ports},127.0.0.1:${port}/postgres`
  t.strictSame(await listNames(await open(t, twice)), [], 'one server at two addresses')
})
