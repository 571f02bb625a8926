// A connection breaks in the middle of a transaction: what was sent is done once, or the answer says what is not known.
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import pg from 'pg'
import pino from 'pino'
import tap, { type Test } from 'tap'
import { shortestAttemptMs } from '../../src/limits.ts'
import type { Relay } from '../store/relay.ts'
import { assertWithin } from '../support/full.ts'
import type { Store } from '../support/stores.ts'

const { openStore } = await import('../support/stores.ts')
const { findEngine } = await import('../support/engines.ts')
const { startRelay } = await import('../store/relay.ts')
const { patienceMs } = await import('../support/until.ts')

const { engine: postgres, skip } = findEngine('PostgreSQL')
const twoPlants = [
  { item: '"a"', id: undefined },
  { item: '"b"', id: undefined },
]

const promisedMs = 5000
/** As it is on the wire; BEGIN … READ COMMITTED is another. */
const commit = 'COMMIT\0'

type Relayed = { relay: Relay; store: Store; direct: string; port: number; lines: PassThrough }

/** A store behind a relay. */
async function open(t: Test): Promise<Relayed> {
  const direct = await postgres.createDatabase(t)
  const { relay, url, port } = await startRelay(t, direct)
  const lines = new PassThrough()
  const store = await openStore(url, { logger: pino(lines), patienceMs })
  t.teardown(() => store.close())
  return { relay, store, direct, port, lines }
}

async function items({ log }: Store): Promise<string> {
  const { position, epochs } = await log.head()
  return String(await log.read(0, position, epochs.owner(position))).slice(1, -1)
}

/** At the same time, as they mostly wait; more would not have their sessions in time on a busy machine. */
tap.jobs = 3

for (const fault of ['before', 'after'] as const) {
  tap.test(`a connection that breaks ${fault} the commit`, { skip, buffered: true }, async (t) => {
    const { relay, store } = await open(t)
    const broken = relay.breakAt(commit, fault)
    t.strictSame(await store.log.append(twoPlants), ['added', 'added'])
    await broken
    t.equal(await items(store), '"a","b"', 'plants without an id are there once')

    const brokenAgain = relay.breakAt(commit, fault)
    const insert =
      "INSERT INTO tokens (id, name, hash, scopes, created_at) VALUES ($1, '', '', '', 0) ON CONFLICT DO NOTHING"
    t.equal(await store.sql.execute(insert, ['a']), 1, 'a statement is done once, and its count is right')
    await brokenAgain
  })
}

tap.test('a connection that breaks when the lock is taken', { skip, buffered: true }, async (t) => {
  const { relay, store } = await open(t)
  await store.log.append(twoPlants)
  const broken = relay.breakAt('BEGIN', 'after')
  t.strictSame(await store.log.append([{ item: '"c"', id: 3 }]), ['added'])
  await broken
  t.equal(await items(store), '"a","b","c"')
})

tap.test('a connection that breaks under a reader', { skip, buffered: true }, async (t) => {
  const { relay, store } = await open(t)
  await store.log.append(twoPlants)
  for (const statement of ['head', 'COPY']) {
    const broken = relay.breakAt(statement, 'after')
    t.equal(await items(store), '"a","b"')
    await broken
  }
})

tap.test('a database that does not come back after the commit', { skip, buffered: true }, async (t) => {
  const { relay, store, port } = await open(t)
  const answer = t.rejects(store.log.append(twoPlants), {
    name: 'StoreUnavailable',
    outcome: 'unknown',
    message: /127\.0\.0\.1:\d+/,
  })
  await relay.breakAt(commit, 'after')
  relay.close()
  await answer
  await relay.listen(port)
  t.strictSame(await store.log.append([{ item: '"c"', id: 3 }]), ['added'], 'service resumes by itself')
  t.match(await items(store), /^("a","b",)?"c"$/)
})

tap.test('a database that is not there', { skip, buffered: true }, async (t) => {
  const { relay, store } = await open(t)
  relay.close()
  const start = performance.now()
  const unread = { name: 'StoreUnavailable', outcome: 'unread', message: /ECONNREFUSED/ }
  const nothingAdded = { ...unread, outcome: 'nothing-added' }
  await Promise.all([
    t.rejects(store.log.append(twoPlants), nothingAdded),
    t.rejects(store.log.append(twoPlants), { ...nothingAdded, message: /ECONNREFUSED|turn/ }),
    t.rejects(store.sql.execute('DELETE FROM tokens'), { ...nothingAdded, message: /ECONNREFUSED|turn/ }),
    t.rejects(Promise.resolve(store.log.head()), unread),
    t.rejects(Promise.resolve(store.log.read(0, 1, '')), unread),
    t.rejects(store.sql.select('SELECT 1'), unread),
    t.rejects(store.ready(), { name: 'StoreUnavailable' }),
  ])
  assertWithin(t, performance.now() - start, promisedMs, 'said also to those who wait for their turn')
})

tap.test(
  'a plant whose time was up before there was a connection is not added later',
  { skip },
  async (t) => {
    const { relay, store, port } = await open(t)
    relay.close()
    await relay.listen(port)
    relay.freeze()
    const late = store.log.append(twoPlants, performance.now() + 3 * shortestAttemptMs)
    await t.rejects(late, { name: 'StoreUnavailable', outcome: 'nothing-added' })
    relay.thaw()
    t.strictSame(await store.log.append([{ item: '"c"', id: 3 }]), ['added'])
    t.equal(await items(store), '"c"')
  },
)

tap.test('a store that was closed says so', { skip }, async (t) => {
  const { store } = await open(t)
  await store.close()
  const closed = { name: 'StoreUnavailable', message: /the store is closed$/ }
  await t.rejects(store.sql.select('SELECT 1'), { ...closed, outcome: 'unread' })
  await t.rejects(store.log.append(twoPlants), { ...closed, outcome: 'nothing-added' })
})

for (const [title, work, result] of [
  ['a batch', (store: Store) => store.log.append(twoPlants), ['added', 'added']],
  ['a statement', (store: Store) => store.sql.execute('DELETE FROM tokens'), 0],
] as const)
  tap.test(`${title} waits for a lock that is held for long`, { skip, buffered: true }, async (t) => {
    const { store, direct, lines } = await open(t)
    const other = new pg.Client(direct)
    await other.connect()
    await other.query('BEGIN; SELECT FROM head FOR UPDATE')
    lines.read()
    const answer = work(store)
    const [line] = await once(lines, 'data')
    t.match(String(line), /lock timeout/, 'the wait ends on the server first')
    await other.query('COMMIT')
    await other.end()
    t.strictSame(await answer, result)
  })
