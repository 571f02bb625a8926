// One kind of work does not take the connections of another: what is slow or too much is refused early, and alone.
import pg from 'pg'
import tap from 'tap'
import { maxLookups, readConnections, segmentPlants } from '../../src/limits.ts'
import { findEngine } from '../support/engines.ts'
import { entries, namesIn, openLog } from '../support/logs.ts'

const { engine: postgres, skip } = findEngine('PostgreSQL')

/** A slow machine may have done what stands beside a flood only after it was cut short: then both are done again. */
const tries = 5

/** Runs `work` many times at once; resolves to how many were done, and the errors of the others. */
async function flood(count: number, work: () => Promise<unknown> | unknown) {
  const results = await Promise.allSettled(Array.from({ length: count }, async () => work()))
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
  return { done: count - errors.length, errors }
}

tap.test('reads that wait for a lock delay only reads', { skip, timeout: 60_000 }, async (t) => {
  const url = await postgres.createDatabase(t)
  const store = await openLog(t, url)
  const names = Array.from({ length: segmentPlants }, (_, n) => `${n}`)
  await store.log.append(entries(...names))
  t.strictSame(await namesIn(store), names)
  const { epochs } = await store.log.head()
  // A long list waits for this session now.
  const holder = new pg.Client(url)
  await holder.connect()
  t.teardown(() => holder.end())
  await holder.query('BEGIN; LOCK TABLE segments IN ACCESS EXCLUSIVE MODE')
  let isBeside = false
  for (let left = tries; left > 0 && !isBeside; left--) {
    let isReading = true
    const slow = flood(readConnections * 10, () =>
      store.log.read(0, segmentPlants, epochs.owner(segmentPlants)),
    ).finally(() => {
      isReading = false
    })
    for (let n = 0; n < 20; n++) {
      t.equal((await store.log.head()).position, segmentPlants)
      t.equal((await store.sql.select('SELECT 1')).length, 1)
      t.equal(await store.sql.execute('DELETE FROM tokens'), 0)
    }
    isBeside = isReading
    const { done, errors } = await slow
    t.equal(done, 0)
    t.ok(errors.every(({ outcome }) => outcome === 'unread'))
  }
  t.ok(isBeside, 'while the reads wait')
  await holder.query('COMMIT')
  t.strictSame(await namesIn(store), names, 'and reading goes on')
})

tap.test(
  'a flood of look-ups is cut short, and delays nothing else',
  { skip, timeout: 60_000 },
  async (t) => {
    const url = await postgres.createDatabase(t)
    const store = await openLog(t, url)
    await store.log.append(entries('a'))
    await namesIn(store)
    await store.sql.select('SELECT 1')
    const holder = new pg.Client(url)
    await holder.connect()
    t.teardown(() => holder.end())
    const lookUp = () => store.sql.select('SELECT name FROM tokens WHERE id = $1', ['nobody'])
    const names = ['a']
    let served = 0
    for (let n = 0; n < tries && served < maxLookups; n++) {
      await holder.query('BEGIN; LOCK TABLE tokens IN ACCESS EXCLUSIVE MODE')
      const looked = flood(5000, lookUp)
      names.push(`${n}`)
      t.strictSame(await store.log.append(entries(`${n}`)), ['added'])
      t.strictSame(await namesIn(store), names, 'plants are added and read while the look-ups wait')
      await holder.query('COMMIT')
      const { done, errors } = await looked
      t.ok(
        errors.every(({ outcome }) => outcome === 'unread'),
        'the others are refused',
      )
      served = done
    }
    t.equal(served, maxLookups, 'as many as may wait are served')
    t.strictSame(await lookUp(), [], 'the next one is served')
  },
)

tap.test('many pages are read in turn', { skip, timeout: 60_000 }, async (t) => {
  const store = await openLog(t, await postgres.createDatabase(t))
  await store.log.append(entries(...Array.from({ length: 500 }, (_, n) => `${n}`)))
  const { epochs } = await store.log.head()
  const { done } = await flood(200, () => store.log.read(0, 500, epochs.owner(500)))
  t.equal(done, 200)
})
