// A server that is to have synchronous standbys, and has lost them: it may have been deposed, so that nothing it shows is
// believed. The servers write to stable storage here.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import tap from 'tap'
import { collectLines } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { startCluster } from './cluster.ts'
import { entries, eventually, namesIn, openLog } from './logs.ts'

const unread = { name: 'StoreUnavailable', outcome: 'unread' }
const timeout = 120_000

tap.test('a replica that only reads does not believe a deposed primary', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 2, synchronous: true })
  const old = cluster.primary
  await old.query('CREATE ROLE plain LOGIN; GRANT ALL ON SCHEMA public TO plain')
  const url = cluster.url().replace('postgres@', 'plain@')
  const reader = await openLog(t, url)
  t.strictSame(await namesIn(reader), [])
  await cluster.failOver()
  const writer = await openLog(t, url)
  for (let n = 1; n <= 10; n++) {
    t.strictSame(await eventually(() => writer.log.append(entries(`${n}`))), ['added'])
    const head = await eventually(() => reader.log.head())
    t.equal(head.position, n, `plant ${n} is in the list that was asked for after its answer`)
  }
  const [row] = await old.query(
    "SELECT pg_is_in_recovery() AS standby, to_regclass('plants')::text AS plants",
  )
  t.strictSame({ ...row }, { standby: false, plants: 'plants' }, 'the old primary is up all the time')
})

tap.test(
  'lists are refused while both standbys are lost, and served when one is back',
  { timeout },
  async (t) => {
    const cluster = await startCluster(t, { standbys: 2, synchronous: true })
    const { logger, find } = collectLines()
    const store = await openLog(t, cluster.url(), logger)
    await store.log.append(entries('a'))
    t.strictSame(await namesIn(store), ['a'])
    await cluster.standbys[0]?.stop()
    t.strictSame(await namesIn(store), ['a'], 'one is enough')
    await cluster.standbys[1]?.stop()
    await t.rejects(Promise.resolve(store.log.head()), { ...unread, message: /synchronous_standby_names/ })
    const line = await find(({ msg }) => msg === 'a connection to the database was lost')
    t.match(line, { err: { message: /it may have been deposed: .* none of them streams/ } })
    await cluster.standbys[1]?.start()
    t.strictSame(await eventually(() => namesIn(store)), ['a'])
  },
)

tap.test(
  'a stream that is no synchronous standby proves nothing to who may see it',
  { timeout },
  async (t) => {
    const cluster = await startCluster(t, { standbys: 1, synchronous: true })
    const store = await openLog(t, cluster.url())
    t.strictSame(await namesIn(store), [])
    await cluster.primary.query("ALTER SYSTEM SET synchronous_standby_names = 'another'")
    await cluster.primary.query('SELECT pg_reload_conf()')
    await until(async () => !(await Promise.resolve(store.log.head()).catch(() => undefined)))
    await t.rejects(Promise.resolve(store.log.head()), unread)
  },
)

tap.test('a server that is away is asked less and less often', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 0, synchronous: false })
  const other = createServer((socket) => socket.destroy())
  let asked = 0
  other.on('connection', () => asked++)
  await once(other.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  const store = await openLog(t, cluster.url().replace(/(?=.postgres$)/, `,127.0.0.1:${port}`))
  await cluster.primary.stop()
  asked = 0
  await t.rejects(Promise.resolve(store.log.head()), unread)
  // A twentieth of a second between two attempts would make ninety.
  t.ok(asked >= 2 && asked <= 70, `asked ${asked} times`)
  await cluster.primary.start()
  t.equal((await eventually(() => store.log.head())).position, 0)
})

tap.test('the first fault of a connection is told', { timeout }, async (t) => {
  const cluster = await startCluster(t, { standbys: 0, synchronous: false })
  const { logger, find } = collectLines()
  const store = await openLog(t, cluster.url(), logger)
  t.strictSame(await namesIn(store), [])
  await cluster.primary.stop()
  await t.rejects(Promise.resolve(store.log.head()), {
    ...unread,
    message: /nothing listens there/,
  })
  const line = await find(({ msg }) => msg === 'a connection to the database was lost')
  t.match(line, { err: { message: /it was shut down, or told to end this session \(.*administrator/ } })
})
