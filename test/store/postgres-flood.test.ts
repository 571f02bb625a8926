// Each kind of work has its own connections: slow or excessive work is refused early, without effect on the others.
import { setTimeout as sleep } from 'node:timers/promises'
import tap from 'tap'
import { makeLink, maxRunning } from '../../src/store/postgres/link.ts'
import { readConnections } from '../../src/store/postgres/postgres-engine.ts'
import { shortestAttemptMs } from '../../src/store/postgres/time-outs.ts'
import { createFirst } from '../../src/tokens/first-token.ts'
import { readTokenId } from '../../src/tokens/format.ts'
import { testPostgres } from '../support/engines.ts'
import { connect } from '../support/postgres.ts'
import { add, listNames, open } from '../support/stores.ts'

/** On a slow machine, a flood may be over before the work beside it is done; then both are repeated. */
const tries = 5

/** Runs `work` many times at once; resolves to the number of successes, and the errors of the others. */
async function flood(count: number, work: () => Promise<unknown> | unknown) {
  const results = await Promise.allSettled(Array.from({ length: count }, async () => work()))
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
  return { done: count - errors.length, errors }
}

testPostgres('delays only reads while the sessions of reads are frozen', async (t, url) => {
  const store = await open(t, url)
  await add(store, 'a', 'b')
  const { mark } = await store.log.head()
  const read = () => store.log.read(0, 2, mark)
  await flood(readConnections, read)
  const client = await connect(t, url)
  const { rows } = await client.query<{ pid: number }>(
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%string_agg%' AND pid <> pg_backend_pid()",
  )
  t.equal(rows.length, readConnections)
  for (const { pid } of rows) process.kill(pid, 'SIGSTOP')
  t.teardown(() => {
    for (const { pid } of rows) process.kill(pid, 'SIGCONT')
  })
  let isReading = true
  const slow = flood(readConnections * 10, read).finally(() => (isReading = false))
  for (let n = 0; n < 20; n++) {
    t.equal((await store.log.head()).position, 2)
    t.equal((await store.sql.select('SELECT 1')).length, 1)
    t.equal(await store.sql.execute('DELETE FROM tokens'), 0)
  }
  t.ok(isReading, 'the reads are still waiting')
  t.equal((await slow).done, readConnections * 10, 'the reads are repeated on other sessions')
})

testPostgres('delays nothing while the use of a token cannot be noted', async (t, url) => {
  const store = await open(t, url)
  const token = await createFirst(store.tokens)
  const id = String(readTokenId(String(token)))
  const holder = await connect(t, url)
  await holder.query('BEGIN; LOCK TABLE tokens IN SHARE MODE')
  const noted = Promise.allSettled([store.tokens.touch(id, 1, 0)])
  t.strictSame(await add(store, 'a'), ['added'])
  t.match(await store.tokens.find(id), { lastUsedAt: null })
  await holder.query('COMMIT')
  await noted
  await store.tokens.touch(id, 3, 2)
  t.match(await store.tokens.find(id), { lastUsedAt: 3 })
})

testPostgres('refuses a flood of look-ups early, and delays nothing else', async (t, url) => {
  const store = await open(t, url)
  await add(store, 'a')
  await listNames(store)
  await store.sql.select('SELECT 1')
  const holder = await connect(t, url)
  const lookUp = () => store.sql.select('SELECT name FROM tokens WHERE id = $1', ['nobody'])
  const names = ['a']
  let served = 0
  for (let n = 0; n < tries && served < maxRunning; n++) {
    await holder.query('BEGIN; LOCK TABLE tokens IN ACCESS EXCLUSIVE MODE')
    const looked = flood(5000, lookUp)
    names.push(`${n}`)
    t.strictSame(await add(store, `${n}`), ['added'])
    t.strictSame(await listNames(store), names, 'plants are added and read while the look-ups wait')
    await holder.query('COMMIT')
    const { done, errors } = await looked
    // On a slow machine, the server ends waits for the lock.
    served = errors.every(({ outcome }) => outcome === 'overloaded') ? done : 0
  }
  t.equal(served, maxRunning, 'as many as the queue holds are served')
  t.strictSame(await lookUp(), [], 'the next one is served')
})

/** What a link needs of its servers, apart from connections. */
const noServers = {
  isReading: false,
  checkTimelines: async () => {},
  follows: () => true,
  reportFailure() {},
}

tap.test('work with too little time after connecting does not end the session of other work', async (t) => {
  let ended = 0
  const session = { server: 'test', destroy: () => ended++ }
  const servers = { ...noServers, connect: () => sleep(shortestAttemptMs).then(() => session) }
  const link = makeLink(servers as never, 'look-up')
  const deadlineMs = performance.now() + 1.5 * shortestAttemptMs
  const late = link.run(() => sleep(shortestAttemptMs), deadlineMs)
  const inTime = link.run(() => sleep(shortestAttemptMs, 'done'))
  await t.rejects(late)
  t.equal(await inTime, 'done')
  t.equal(ended, 0)
})

tap.test('repeats work whose server was left meanwhile, and ends no session of other work', async (t) => {
  let [made, isLeft] = [0, false]
  const ended: number[] = []
  const connect = async () => {
    const n = ++made
    isLeft = false
    return { server: 'test', destroy: () => ended.push(n) }
  }
  const servers = { ...noServers, follows: () => !isLeft, connect }
  const link = makeLink(servers as never, 'writer')
  let runs = 0
  await link.run(async () => {
    isLeft = ++runs === 1
  })
  t.equal(runs, 2, 'a commit on it may be lost')
  const late = Promise.withResolvers<void>()
  const failOnce = (failure: Promise<void>) => {
    const attempts = [failure]
    return link.run(async () => attempts.pop())
  }
  const slow = failOnce(late.promise)
  await failOnce(Promise.reject(new Error('early')))
  late.reject(new Error('late'))
  await slow
  t.same(ended, [1, 2], 'the late failure ends no newer session')
})
