// What an outage of PostgreSQL leaves behind: one failure, and no session.
import pg from 'pg'
import tap, { type Test } from 'tap'
import '../support/short-limits.ts'
import { until } from '../support/until.ts'

const { findEngine, sharedServer } = await import('../support/engines.ts')
const { collectLines } = await import('../support/stores.ts')
const { entries, openLog } = await import('./logs.ts')
const { startRelay } = await import('./relay.ts')

const { engine: postgres, skip } = findEngine('PostgreSQL')

/** A store behind a relay, and an operator's connection to another database of its server. */
async function open(t: Test) {
  const direct = await postgres.createDatabase(t)
  const { relay, url } = await startRelay(t, direct)
  const name = new URL(direct).pathname.slice(1)
  const operator = new pg.Client((await sharedServer()).url())
  await operator.connect()
  t.teardown(() => operator.end())
  const { logger, find } = collectLines()
  const query = async (text: string) => (await operator.query(text.replaceAll('$name', name))).rows
  return {
    relay,
    query,
    store: await openLog(t, url, logger),
    find,
    countSessions: async () => (await query("SELECT FROM pg_stat_activity WHERE datname = '$name'")).length,
    endSessions: () =>
      query("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '$name'"),
  }
}

tap.test('a connection that is lost is one failure, however much was asked on it', { skip }, async (t) => {
  const { store, find, endSessions } = await open(t)
  await store.sql.select('SELECT 1')
  await endSessions()
  await Promise.all([1, 2, 3].map(() => store.sql.select('SELECT 1')))
  t.match(await find(({ msg }) => msg === 'the database is connected again'), { failures: 1 })
})

tap.test('attempts that fail leave no session open', { skip }, async (t) => {
  const { store, query, endSessions, countSessions } = await open(t)
  await store.log.head()
  await query('ALTER DATABASE $name SET default_transaction_read_only = on')
  await endSessions()
  await t.rejects(async () => store.log.head(), { message: /default_transaction_read_only is on/ })
  await until(async () => (await countSessions()) === 0)
})

tap.test(
  'a head that may be ahead of the standbys is read on another session, and the one before ends',
  {
    skip,
  },
  async (t) => {
    const { store, relay, countSessions } = await open(t)
    await store.log.head()
    const before = await countSessions()
    const broken = relay.breakAt('COMMIT\0', 'after')
    t.strictSame(await store.log.append(entries('a')), ['added'])
    await broken
    t.strictSame((await store.log.head()).position, 1)
    await until(async () => (await countSessions()) <= before)
  },
)
