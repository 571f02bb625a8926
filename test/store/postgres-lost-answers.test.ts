// A connection breaks during a transaction: the commit is recognized by its mark and happens once, or the outcome is
// unknown.
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import type pg from 'pg'
import pino from 'pino'
import tap, { type Test } from 'tap'
import { assertWithin } from '../support/full.ts'
import '../support/short-limits.ts'
import type { Store } from '../support/stores.ts'
import { until } from '../support/until.ts'

const { shortestAttemptMs } = await import('../../src/store/postgres/time-outs.ts')
const { findEngine } = await import('../support/engines.ts')
const { add, entry, listNames, open, unavailable } = await import('../support/stores.ts')
const { connect } = await import('../support/postgres.ts')
const { startRelay } = await import('./relay.ts')

const { engine: postgres, skip } = findEngine('PostgreSQL')
const twoPlants = [entry('a'), entry('b')]

const promisedMs = 5000
/** A COMMIT alone on the wire, with its length: the transaction of a handshake ends with another one. */
const commit = '\x0bCOMMIT\0'

type Relayed = Awaited<ReturnType<typeof start>>

/** Opens a store behind a relay. */
async function start(t: Test) {
  const direct = await postgres.createDatabase(t)
  const { relay, url, port } = await startRelay(t, direct)
  const lines = new PassThrough()
  const store = await open(t, url, { logger: pino(lines) })
  return { relay, store, other: await connect(t, direct), port, lines }
}

/**
 * Runs `work` and drops the response to its COMMIT. Before the store can reconnect, runs `meddle`. `written`: a query
 * that returns a row once the transaction is committed.
 */
async function meddled<T>(
  { store, relay, other }: Relayed,
  work: (store: Store) => Promise<T>,
  { written, meddle }: { written: string; meddle: () => Promise<unknown> | unknown },
): Promise<T> {
  const broken = relay.breakAt(commit, 'after')
  const answer = work(store)
  answer.catch(() => {})
  await broken
  relay.freeze()
  await until(async () => (await other.query(written)).rows.length > 0)
  await meddle()
  relay.thaw()
  return answer
}

const secondPlant = 'SELECT FROM plants WHERE position = 2'

/** Copies the table of plants. The returned function replaces the table by the copy. */
async function keepPlants(other: pg.Client): Promise<() => Promise<unknown>> {
  await other.query('CREATE TABLE kept AS TABLE plants')
  return () => other.query('BEGIN; DROP TABLE plants; ALTER TABLE kept RENAME TO plants; COMMIT')
}

/** The tests mostly wait. With more of them at a time, a busy machine could not open the sessions in time. */
tap.jobs = 3

const it = (title: string, body: (t: Test) => unknown) => tap.test(title, { skip, buffered: true }, body)

for (const fault of ['before', 'after', 'panic', 'crash'] as const) {
  it(`adds plants once if the connection breaks at the commit: ${fault}`, async (t) => {
    const { relay, store } = await start(t)
    const broken = relay.breakAt(commit, fault)
    t.strictSame(await store.log.append(twoPlants), ['added', 'added'])
    await broken
    t.strictSame(await listNames(store), ['a', 'b'], 'plants without an id are added once')

    const brokenAgain = relay.breakAt(commit, fault)
    const insert =
      "INSERT INTO tokens (id, name, hash, scopes, created_at) VALUES ($1, '', '', '', 0) ON CONFLICT DO NOTHING"
    const unknown = unavailable('unknown')
    await t.rejects(store.sql.execute(insert, ['a']), unknown, 'a statement runs at most once')
    await brokenAgain
  })
}

it('adds plants once if the connection breaks while the store takes the lock', async (t) => {
  const { relay, store } = await start(t)
  await store.log.append(twoPlants)
  const broken = relay.breakAt('BEGIN', 'after')
  t.strictSame(await store.log.append([entry('c', 3)]), ['added'])
  await broken
  t.strictSame(await listNames(store), ['a', 'b', 'c'])
})

it('changes nothing if only BEGIN fails', async (t) => {
  const { relay, store } = await start(t)
  const runs: (() => Promise<unknown>)[] = [
    () => store.log.append(twoPlants, { notes: [{ key: 'import/far', before: '', value: 'x' }] }),
    () => store.sql.execute("INSERT INTO meta (key, value) VALUES ('a', 'b')"),
  ]
  for (const run of runs) {
    void relay.breakAt('BEGIN', 'misspell')
    await t.rejects(run(), { ...unavailable('nothing-added'), message: /syntax error/ })
    t.ok(await run(), 'the same again')
  }
  t.strictSame(await listNames(store), ['a', 'b'])
})

it('refuses at once what the server refuses with a warning', async (t) => {
  const { store, other } = await start(t)
  await other.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE WARNING 'page verification failed'; RAISE EXCEPTION 'invalid page'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON plants EXECUTE FUNCTION refuse()`)
  const refused = { ...unavailable('nothing-added'), message: /invalid page/ }
  await t.rejects(store.log.append(twoPlants), refused)
})

it('repeats a read if its connection breaks', async (t) => {
  const { relay, store } = await start(t)
  await store.log.append(twoPlants)
  for (const statement of ['read-head', 'page']) {
    const broken = relay.breakAt(statement, 'after')
    t.strictSame(await listNames(store), ['a', 'b'])
    await broken
  }
})

it('answers unknown if the database does not return after the commit', async (t) => {
  const { relay, store, port } = await start(t)
  const lost = { ...unavailable('unknown'), message: /127\.0\.0\.1:\d+/ }
  const answer = t.rejects(store.log.append(twoPlants), lost)
  await relay.breakAt(commit, 'after')
  relay.close()
  await answer
  await relay.listen(port)
  t.strictSame(await store.log.append([entry('c', 3)]), ['added'], 'the store recovers by itself')
  t.match((await listNames(store)).join(), /^(a,b,)?c$/)
})

it('answers in time if the database is unavailable', async (t) => {
  const { relay, store } = await start(t)
  relay.close()
  const startMs = performance.now()
  const unread = { name: 'StoreUnavailable', outcome: 'unread', message: /ECONNREFUSED/ }
  const nothingAdded = { ...unread, outcome: 'nothing-added' }
  const queued = { ...nothingAdded, message: /ECONNREFUSED|timed out/ }
  await Promise.all([
    t.rejects(store.log.append(twoPlants), nothingAdded),
    t.rejects(store.log.append(twoPlants), queued),
    t.rejects(store.sql.execute('DELETE FROM tokens'), queued),
    t.rejects(Promise.resolve(store.log.head()), unread),
    t.rejects(Promise.resolve(store.log.read(0, 1, '')), unread),
    t.rejects(store.sql.select('SELECT 1'), unread),
    t.rejects(store.log.append([]), { name: 'StoreUnavailable' }),
  ])
  assertWithin(t, performance.now() - startMs, promisedMs, 'queued additions are also answered in time')
})

it('does not add a plant whose deadline passed before there was a connection', async (t) => {
  const { relay, store, port } = await start(t)
  relay.close()
  await relay.listen(port)
  relay.freeze()
  const late = store.log.append(twoPlants, { deadlineMs: performance.now() + 3 * shortestAttemptMs })
  await t.rejects(late, unavailable('nothing-added'))
  relay.thaw()
  t.strictSame(await store.log.append([entry('c', 3)]), ['added'])
  t.strictSame(await listNames(store), ['c'])
})

it('recognizes its commit that added no plants', async (t) => {
  const opened = await start(t)
  const { store } = opened
  await store.log.append([entry('a', 1)])
  const note = { key: 'import/far', before: '', value: 'x' }
  const written = "SELECT FROM meta WHERE key = 'import/far'"
  const append = () => store.log.append([entry('a', 1)], { notes: [note] })
  t.strictSame(await meddled(opened, append, { written, meddle: () => {} }), ['replayed'])
  t.strictSame(await store.notes(), new Map([['import/far', 'x']]))
})

it('answers nothing-added if a batch of known plants fails', async (t) => {
  const { store, relay, port } = await start(t)
  await store.log.append([entry('a', 1)])
  const answer = store.log.append([entry('a', 1)])
  const refused = t.rejects(answer, unavailable('nothing-added'))
  await relay.breakAt(commit, 'after')
  relay.close()
  await refused
  await relay.listen(port)
})

it('adds a batch again if the log was replaced after the commit', async (t) => {
  const opened = await start(t)
  const { store, other } = opened
  await add(store, 'a')
  const restore = await keepPlants(other)
  const append = () => add(store, 'b')
  const meddle = async () => {
    await restore()
    await other.query('INSERT INTO plants VALUES (2, NULL, \'{"name":"x"}\', \'another\', 0)')
  }
  t.strictSame(await meddled(opened, append, { written: secondPlant, meddle }), ['added'])
  t.strictSame(await listNames(store), ['a', 'x', 'b'], 'after the plant that another process added')
})

it('answers unknown if a commit was found, but lost before it was confirmed', async (t) => {
  const opened = await start(t)
  const { store, relay, other } = opened
  await add(store, 'a')
  const restore = await keepPlants(other)
  const confirmed = Promise.withResolvers<void>()
  const meddle = () => confirmed.resolve(relay.breakAt(commit, 'before'))
  const lost = meddled(opened, () => add(store, 'b'), { written: secondPlant, meddle })
  lost.catch(() => {})
  await confirmed.promise
  relay.freeze()
  // As on a server that refuses writes and lacks the plant.
  await restore()
  await other.query('ALTER TABLE plants ADD CONSTRAINT refused CHECK (position < 0) NOT VALID')
  relay.thaw()
  await t.rejects(lost, unavailable('unknown'))
})

it('leaves no dead rows behind an open snapshot', async (t) => {
  const { store, other } = await start(t)
  await other.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM plants')
  const names = Array.from({ length: 50 }, (_, n) => `${n}`)
  for (const name of names) await add(store, name)
  for (let n = 0; n < 3; n++) await store.log.append([])
  t.strictSame(await listNames(store), names)
  await store.close()
  await other.query('COMMIT')
  const { rows } = await other.query(
    'SELECT relname FROM pg_stat_user_tables WHERE n_tup_upd > 0 OR n_tup_del > 0',
  )
  t.strictSame(rows, [], 'nothing was updated or deleted')
})

it('waits for a lock that is held for a long time', async (t) => {
  const { store, other, lines } = await start(t)
  await other.query('BEGIN; SELECT FROM head FOR UPDATE')
  lines.read()
  const answer = store.log.append(twoPlants)
  const [line] = await once(lines, 'data')
  t.match(String(line), /lock timeout/, 'the server ends the wait first')
  await other.query('COMMIT')
  t.strictSame(await answer, ['added', 'added'])
})
