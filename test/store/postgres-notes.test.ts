// The notes by which a writer finds out what became of a batch: whose clock they go by, and what a lost one means.
import pg from 'pg'
import tap, { type Test } from 'tap'
import { findEngine } from '../support/engines.ts'
import { entries, namesIn, openLog } from '../support/logs.ts'
import type { Store } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { type Relay, startRelay } from './relay.ts'

const { engine: postgres, skip } = findEngine('PostgreSQL')

type Opened = { store: Store; relay: Relay; direct: string; other: pg.Client }

async function open(t: Test): Promise<Opened> {
  const direct = await postgres.createDatabase(t)
  const { relay, url } = await startRelay(t, direct)
  const store = await openLog(t, url)
  const other = new pg.Client(direct)
  await other.connect()
  t.teardown(() => other.end())
  return { store, relay, direct, other }
}

/** Appends; the answer to COMMIT is lost, and while the writer cannot ask again, `meddle` is done. */
async function appendMeddled(
  { store, relay, other }: Opened,
  meddle: (other: pg.Client) => Promise<unknown>,
) {
  const broken = relay.breakAt('COMMIT\0', 'after')
  const answer = store.log.append(entries('b'))
  answer.catch(() => {})
  await broken
  relay.freeze()
  // The batch is there when its note is.
  await until(async () => (await other.query('SELECT 1 FROM plants')).rows.length === 2)
  await meddle(other)
  relay.thaw()
  return answer
}

tap.test('a replica that starts leaves the notes of the others', { skip, timeout: 60_000 }, async (t) => {
  const opened = await open(t)
  await opened.store.log.append(entries('a'))
  const outcomes = await appendMeddled(opened, () => openLog(t, opened.direct))
  t.strictSame(outcomes, ['added'], 'the writer finds its note')
  t.strictSame(await namesIn(opened.store), ['a', 'b'], 'and adds nothing twice')
})

tap.test(
  'a batch that deletes the notes before it is found by its own, too',
  { skip, timeout: 60_000 },
  async (t) => {
    const { store, relay, other } = await open(t)
    const lastBatch = async () => {
      const { rows } = await other.query<{ last: string }>('SELECT max(batch) AS last FROM writers')
      return Number(rows[0]?.last)
    }
    await store.log.append(entries('a'))
    // Old notes are deleted with each hundredth batch; with statements the number is reached more cheaply.
    while ((await lastBatch()) % 100 !== 99) await store.sql.execute('DELETE FROM tokens')
    const broken = relay.breakAt('COMMIT\0', 'after')
    t.strictSame(await store.log.append(entries('b')), ['added'])
    await broken
    t.equal((await lastBatch()) % 100, 0)
    t.strictSame(await namesIn(store), ['a', 'b'], 'each is there once')
  },
)

tap.test('a missing note is no proof that nothing was added', { skip, timeout: 60_000 }, async (t) => {
  for (const first of [['a'], []]) {
    const opened = await open(t)
    if (first.length > 0) await opened.store.log.append(entries(...first))
    else await opened.other.query(`INSERT INTO plants VALUES (0, NULL, '"0"', NULL)`)
    const answer = appendMeddled(opened, (other) => other.query('DELETE FROM writers'))
    await t.rejects(answer, { name: 'StoreUnavailable', outcome: 'unknown', message: /note/ })
    t.strictSame(await namesIn(opened.store), [...first, 'b'], 'it is there once')
    t.strictSame(await opened.store.log.append(entries('c')), ['added'], 'and the writer goes on')
  }
})

tap.test(
  'a batch that was found counts as added, whatever fails afterwards',
  { skip, timeout: 60_000 },
  async (t) => {
    const refuseNotes = 'ALTER TABLE writers ADD CONSTRAINT refused CHECK (batch < 0) NOT VALID'
    const opened = await open(t)
    await opened.store.log.append(entries('a'))
    const found = appendMeddled(opened, (other) => other.query(refuseNotes))
    t.strictSame(await found, ['added'], 'to confirm it nothing is written')
    t.strictSame(await namesIn(opened.store), ['a', 'b'])

    const again = await open(t)
    const { relay, other } = again
    await again.store.log.append(entries('a'))
    const confirmed = Promise.withResolvers<void>()
    const lost = appendMeddled(again, async () => confirmed.resolve(relay.breakAt('COMMIT\0', 'before')))
    lost.catch(() => {})
    await confirmed.promise
    relay.freeze()
    // As on a server that has not got it.
    await other.query(`DELETE FROM writers WHERE batch = 2; ${refuseNotes}`)
    relay.thaw()
    await t.rejects(lost, { name: 'StoreUnavailable', outcome: 'unknown' })
  },
)

tap.test(
  'an open snapshot finds no version of a row more with each batch',
  { skip, timeout: 60_000 },
  async (t) => {
    const { store, other } = await open(t)
    await other.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM plants')
    const names = Array.from({ length: 250 }, (_, n) => `${n}`)
    for (const name of names) await store.log.append(entries(name))
    for (let n = 0; n < 3; n++) await store.ready()
    t.strictSame(await namesIn(store), names)
    await store.close()
    await other.query('COMMIT')
    const { rows } = await other.query(`
    SELECT relname, n_tup_upd::int AS updated FROM pg_stat_user_tables WHERE n_tup_upd > 0 AND relname <> 'meta'`)
    t.strictSame(rows, [], 'nothing was updated')
    const notes = await other.query('SELECT count(*)::int AS notes FROM writers')
    t.ok(notes.rows[0].notes < 150, 'and old notes are gone')
  },
)

tap.test('old notes are deleted, by the clock of the database', { skip, timeout: 60_000 }, async (t) => {
  const { other, direct } = await open(t)
  const hours = (count: number) => `(extract(epoch FROM now()) * 1000)::bigint - ${count} * 3600000`
  await other.query(`INSERT INTO writers VALUES ('old', 1, ${hours(25)}), ('young', 1, ${hours(23)})`)
  // A replica whose own clock is days ahead.
  const now = Date.now
  t.teardown(() => {
    Date.now = now
  })
  Date.now = () => now() + 10 * 24 * 3600 * 1000
  const ahead = await openLog(t, direct)
  await ahead.log.append(entries('a'))
  Date.now = now
  const { rows } = await other.query('SELECT id FROM writers WHERE length(id) < 10')
  t.strictSame(rows, [{ id: 'young' }])
  const future = await other.query(`SELECT id FROM writers WHERE seen_at > ${hours(-1)}`)
  t.strictSame(future.rows, [], 'and no note is from the future')
})
