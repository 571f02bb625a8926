// The contract of a store, on every engine.
import fc from 'fast-check'
import tap, { type Test } from 'tap'
import type { Entry, Store, Token } from '../../src/store/engine.ts'
import { checksumOf } from '../../src/store/engine.ts'
import { type Engine, engines } from '../support/engines.ts'
import { isFull, seed, tellSeed } from '../support/full.ts'
import { MemoryLog } from '../support/memory-log.ts'
import { open, openStore, unavailable } from '../support/stores.ts'
import { patienceMs } from '../support/until.ts'
import { eventually } from './logs.ts'

const starts = isFull ? 20 : 3
/** The times of a token that never expires, was never used and is not revoked. */
const none = { expiresAt: null, lastUsedAt: null, revokedAt: null }

const openNew = async (t: Test, engine: Engine): Promise<Store> => open(t, await engine.createDatabase(t))
const entry = (item: string, id?: number): Entry => ({ item, id })
const countPlants = async ({ log }: Store) => (await log.head()).position

/** Reads at most `count` items after `after` from the log. */
async function readText({ log }: Store, after: number, count: number): Promise<string> {
  const { position } = await log.head()
  const last = Math.min(position, after + count)
  const mark = (await log.head([last])).markOf(last)
  return String(await log.read(Math.min(after, last), last, String(mark))).slice(1, -1)
}

const anyEntry = fc.record({
  item: fc.oneof(
    fc.constantFrom('{"name":"a"}', '{"name":"b"}', '{"name":"\\\\ \\" {,} \'"}', '{"name":"🌵 ñ 木"}'),
    fc.string({ unit: 'binary', maxLength: 255 }).map((name) => JSON.stringify({ name })),
  ),
  id: fc.option(fc.oneof(fc.nat(99), fc.constant(2 ** 53 - 1)), { nil: undefined }),
})
const anyBatch = fc.array(anyEntry, { minLength: 1, maxLength: 12 })

for (const engine of engines) {
  tap.test(`a log on ${engine.name}`, async (t) => {
    t.test('changes a note together with its batch, even if nothing is added', async (t) => {
      const { log, notes } = await openNew(t, engine)
      await log.append([], { notes: [{ key: 'import/far', before: '', value: '0' }] })
      await log.append([entry('a', 1)], { notes: [{ key: 'import/far', before: '0', value: '1' }] })
      t.strictSame(await notes(), new Map([['import/far', '1']]))
      const note = { key: 'import/far', before: '1', value: '2' }
      t.strictSame(await log.append([entry('a', 1)], { notes: [note] }), ['replayed'])
      t.strictSame(await notes(), new Map([['import/far', '2']]))
      t.equal((await log.head()).position, 1)
    })

    t.test('changes a note, and adds, only from its expected value', async (t) => {
      const { notes, log } = await openNew(t, engine)
      const change = (key: string, before: string, value: string, ...entries: Entry[]) =>
        log.append(entries, { notes: [{ key, before, value }] })
      const refused = { ...unavailable('nothing-added'), message: /note import\/1 has changed/ }
      await t.rejects(change('import/1', 'x', '1'), refused)
      await change('import/1', '', '1')
      await t.rejects(change('import/1', '', '2'), refused)
      await t.rejects(change('import/1', '2', '3', entry('a', 1)), refused)
      t.equal((await log.head()).position, 0)
      await change('import/2', '', '🌵')
      t.strictSame(Object.fromEntries(await notes()), { 'import/1': '1', 'import/2': '🌵' })
      await change('import/1', '1', '4')
      t.equal((await notes()).get('import/1'), '4')
    })

    t.test('finds plants by their ids', async (t) => {
      const store = await openNew(t, engine)
      await store.log.append([entry('"a"', 1), entry('"b"'), entry('"c"', 2 ** 53 - 1)])
      t.strictSame([...(await store.find([1, 2, 2 ** 53 - 1]))].sort(), [
        [1, '"a"'],
        [2 ** 53 - 1, '"c"'],
      ])
      t.equal((await store.find([])).size, 0)
    })

    t.test('stores tokens: one valid token per name, each replaced once and revoked once', async (t) => {
      const { tokens } = await openNew(t, engine)
      const token = (id: string, createdAt: number, name = 'a'): Token => {
        return { id, name, hash: id.repeat(4), scopes: ['x', 'y'], createdAt, ...none }
      }
      t.strictSame(await tokens.all(), [])
      t.strictSame(await Promise.all([tokens.add(token('1', 10)), tokens.add(token('2', 10))]), [true, false])
      t.notOk(await tokens.add(token('1', 10, 'b')), 'an id is never reused')
      t.strictSame([await tokens.find('1'), await tokens.find('2')], [token('1', 10), undefined])
      const replaced = [3, 4].map((n) => tokens.replace({ id: '1', expiresAt: 50 }, token(`${n}`, 20), 20))
      t.strictSame((await Promise.all(replaced)).toSorted(), [false, true])
      const [former, newer, ...others] = await tokens.all()
      t.match(former, { id: '1', expiresAt: 50 })
      t.match(newer, { expiresAt: null, scopes: ['x', 'y'] })
      t.strictSame(others, [])
      const late = await tokens.replace({ id: '1', expiresAt: 60 }, token('5', 55), 55)
      t.notOk(late, 'an expired token cannot be replaced')
      await tokens.touch('1', 30, 0)
      await tokens.touch('1', 40, 29)
      t.match(await tokens.find('1'), { lastUsedAt: 30 })
      await tokens.touch('1', 20, 10)
      t.match(await tokens.find('1'), { lastUsedAt: 20 }, 'the clock was ahead')
      const id = String(newer?.id)
      t.strictSame([await tokens.revoke(id, 60), await tokens.revoke(id, 61)], [true, false])
      t.match(await tokens.find(id), { revokedAt: 60 })
      t.notOk(await tokens.revoke('6', 61))
      t.ok(await tokens.add(token('7', 70)), 'the name is free again')
    })

    t.test('agrees with the oracle, batch by batch', async (t) => {
      tellSeed(t)
      const store = await openNew(t, engine)
      const oracle = new MemoryLog()
      const itemsAfter = (position: number) => oracle.entries.slice(position).map(({ item }) => item)
      const property = fc.asyncProperty(anyBatch, async (batch) => {
        const start = oracle.rows.length
        t.strictSame(await store.log.append(batch), oracle.add(...batch), 'the same outcomes')
        t.equal(await countPlants(store), oracle.rows.length)
        t.equal(await readText(store, start, batch.length), itemsAfter(start).join())
      })
      // Each batch depends on those before, so a failure cannot be shrunk.
      await fc.assert(property, { seed, numRuns: 100, endOnFailure: true })
      t.equal(await readText(store, 0, oracle.rows.length), itemsAfter(0).join())
    })

    t.test('numbers plants without gaps, in the order of the calls', async (t) => {
      const store = await openNew(t, engine)
      const batches = Array.from({ length: 20 }, (_, batch) =>
        Array.from({ length: 1 + (batch % 3) }, (_, index) => entry(`"${batch}.${index}"`, index)),
      )
      const outcomes = await Promise.all(batches.map((batch) => store.log.append(batch)))
      t.strictSame(outcomes.slice(0, 3), [
        ['added'],
        ['conflict', 'added'],
        ['conflict', 'conflict', 'added'],
      ])
      t.equal(await countPlants(store), 3)
      t.equal(await readText(store, 0, 3), '"0.0","1.1","2.2"')
    })

    t.test('accepts a batch of 4096 of the longest plants', async (t) => {
      const store = await openNew(t, engine)
      const batch = Array.from({ length: 4096 }, (_, id) => entry(`"${id} ${'x'.repeat(2060)}"`, id))
      // On a busy machine, the store may give up before the batch is added; a retry finds it.
      const append = async () => new Set(await eventually(() => store.log.append(batch), patienceMs))
      t.match([...(await append())].join(), /^(added|replayed)$/)
      t.strictSame([...(await append())], ['replayed'])
      t.equal(await countPlants(store), 4096)
      t.equal(await readText(store, 4095, 1), batch[4095]?.item)
    })

    t.test('appends a batch as a whole or not at all', async (t) => {
      const store = await openNew(t, engine)
      const impossible = store.log.append([entry('"a"'), entry('"b"', 1.5), entry('"c"')])
      await t.rejects(impossible, unavailable('nothing-added'))
      t.equal(await countPlants(store), 0)
      t.strictSame(await store.log.append([entry('"d"'), entry('"e"', 2)]), ['added', 'added'])
      t.equal(await readText(store, 0, 9), '"d","e"')
    })

    t.test('shows each of two stores on a database what the other adds', async (t) => {
      const url = await engine.createDatabase(t)
      const stores = [await open(t, url), await open(t, url)] as const
      t.equal(stores[0].id, stores[1].id)
      t.match(stores[0].id, /^[\w-]{22}$/)
      t.not((await openNew(t, engine)).id, stores[0].id)
      for (let n = 1; n <= 20; n++) {
        await stores[n % 2]?.log.append([entry(`"${n}"`, n)])
        t.equal(await countPlants(stores[(n + 1) % 2] as Store), n)
      }
      t.strictSame(await stores[0].log.append([entry('"1"', 1)]), ['replayed'])
      await Promise.all(
        stores.flatMap(({ log }) =>
          Array.from({ length: 20 }, (_, n) => log.append([entry(`"${n}"`, 100 + n)])),
        ),
      )
      t.equal(await countPlants(stores[0]), 40, 'each id once')
      t.equal(await readText(stores[0], 0, 40), await readText(stores[1], 0, 40))
    })

    t.test('is created once by many stores that open it at the same time', async (t) => {
      // Each store on SQLite starts a thread.
      const length = engine.name === 'SQLite' ? 4 : 16
      for (let round = 0; round < starts; round++) {
        const url = await engine.createDatabase(t)
        const stores = await Promise.all(Array.from({ length }, () => openStore(url)))
        t.equal(new Set(stores.map(({ id }) => id)).size, 1, 'all are the same store')
        t.strictSame(await stores[0]?.log.append([entry('"a"', 1)]), ['added'])
        t.equal(await countPlants(stores.at(-1) as Store), 1)
        await Promise.all(stores.map((store) => store.close()))
      }
    })

    t.test('reads exactly the requested range, or nothing', async (t) => {
      const store = await openNew(t, engine)
      await store.log.append([entry('"a"'), entry('"b"')])
      const { mark } = await store.log.head()
      t.equal(String(await store.log.read(0, 2, mark)), '["a","b"]')
      t.equal(String(await store.log.read(2, 2, mark)), '[]')
      const faults: [after: number, last: number, mark: string][] = [
        [0, 3, mark],
        [2, 3, mark],
        [0, 2, 'another'],
        [0, 2, ''],
        [0, 0, mark],
      ]
      for (const [after, last, mark] of faults) {
        const read = async () => store.log.read(after, last, mark)
        await t.rejects(read, unavailable('unread'), `${after} to ${last} with '${mark}'`)
      }
    })

    t.test('gives the rows of each commit their own mark, the same on every store', async (t) => {
      const url = await engine.createDatabase(t)
      const [one, two] = [await open(t, url), await open(t, url)]
      const empty = await one.log.head([0, 1])
      t.same([empty.position, empty.mark, empty.markOf(0), empty.markOf(1)], [0, '', '', undefined])
      await one.log.append([entry('"a"', 1), entry('"b"')])
      await two.log.append([entry('"a"', 1), entry('"c"')])
      await one.log.append([entry('"a"', 1)])
      const [head, other] = [await one.log.head([0, 1, 2, 3, 4]), await two.log.head([1, 2, 3])]
      const marks = [1, 2, 3].map((position) => String(head.markOf(position)))
      for (const mark of marks) t.match(mark, /^[\w-]{11}$/)
      t.equal(marks[0], marks[1])
      t.not(marks[1], marks[2])
      t.same([head.position, head.mark, head.markOf(0), head.markOf(4)], [3, marks[2], '', undefined])
      for (const [n, mark] of marks.entries()) t.equal(other.markOf(n + 1), mark)
      const rows = await two.plants(0, 3, 9)
      const [held, checksums] = [rows.map(({ mark }) => mark), rows.map(({ checksum }) => checksum)]
      t.same(held, marks)
      t.same(rows.map(checksumOf), checksums)
    })

    t.test('reads rows as they are stored, and puts them only at the end of a log', async (t) => {
      const store = await openNew(t, engine)
      const items = ['{"name":"a","tag":""}', '{"name":"b","tag":"}"}', '{"name":"c","tag":"ñ"}']
      await store.log.append(items.map((item, n) => entry(item, n === 1 ? undefined : n)))
      const rows = items.map((item, n) => ({ position: n + 1, id: n === 1 ? null : n, item }))
      t.match(await store.plants(0, 9, 9), rows)
      t.match(await store.plants(1, 3, 1), rows.slice(1, 2))
      t.strictSame(await store.plants(1, 1, 9), [])
      for (const [part, check] of Object.entries(store.checks)) t.same(await check(), [], part)
      const other = await openNew(t, engine)
      await t.rejects(other.put(await store.plants(1, 3, 9)), unavailable('nothing-added'))
    })

    t.test('opened read-only, shows what others add and changes nothing', async (t) => {
      const url = await engine.createDatabase(t)
      const options = { mode: 'read' } as const
      await t.rejects(openStore(url, options), {
        message: /no database file at|does not contain a plant store/,
      })
      const store = await open(t, url)
      await store.log.append([entry('{"name":"a"}', 1)])
      const reader = await open(t, url, options)
      t.equal(reader.id, store.id)
      t.equal(await readText(reader, 0, 9), '{"name":"a"}')
      await store.log.append([entry('{"name":"b"}')])
      t.equal(await readText(reader, 0, 9), '{"name":"a"},{"name":"b"}')
      const refused = unavailable('nothing-added')
      await t.rejects(reader.log.append([entry('{"name":"c"}')]), refused)
      await t.rejects(reader.log.append([]), refused)
      await t.rejects(reader.tokens.revoke('1', 1), refused)
      t.equal(await countPlants(store), 2)
    })
  })
}
