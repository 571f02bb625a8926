// What a log of plants promises, on every engine.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import pino from 'pino'
import tap, { type Test } from 'tap'
import type { Entry, Outcome } from '../../src/store/engine.ts'
import { StoreRefused, StoreUnavailable } from '../../src/store/errors.ts'
import { checksumOf } from '../../src/store/format/checksum.ts'
import { type Engine, engines, sharedServer } from '../support/engines.ts'
import { eventually } from '../support/logs.ts'
import { seed, tellSeed } from '../support/seed.ts'
import { openStore, type Store } from '../support/sql-store.ts'
import { patienceMs } from '../support/until.ts'

const logger = pino({ level: 'silent' })

async function open(t: Test, url: string): Promise<Store> {
  const store = await openStore(url, { logger })
  t.teardown(() => store.close())
  return store
}

async function openNew(t: Test, engine: Engine): Promise<Store> {
  return open(t, await engine.createDatabase(t))
}

function entry(item: string, id?: number): Entry {
  return { item, id }
}

async function countPlants({ log }: Store): Promise<number> {
  return (await log.head()).position
}

/** The items after `after`, at most `count`, as the log holds them now. */
async function readText({ log }: Store, after: number, count: number): Promise<string> {
  const { position, epochs } = await log.head()
  const last = Math.min(position, after + count)
  return String(await log.read(after, last, epochs.owner(last))).slice(1, -1)
}

/** What a log must do, in the plainest words. */
class Oracle {
  readonly items: string[] = []
  readonly #known = new Map<number, string>()

  append(entries: Entry[]): Outcome[] {
    return entries.map(({ item, id }) => {
      const known = id === undefined ? undefined : this.#known.get(id)
      if (known !== undefined) return known === item ? 'replayed' : 'conflict'
      if (id !== undefined) this.#known.set(id, item)
      this.items.push(item)
      return 'added'
    })
  }
}

const anyEntry = fc.record({
  item: fc.constantFrom('{"name":"a"}', '{"name":"b"}', '{"name":"\\\\ \\" {,} \'"}', '{"name":"🌵 ñ 木"}'),
  id: fc.option(fc.oneof(fc.nat(99), fc.constant(2 ** 53 - 1)), { nil: undefined }),
})
const anyBatch = fc.array(anyEntry, { minLength: 1, maxLength: 12 })

/** How a newer version leaves its mark, and everything that a refusal could have changed. */
const newer: Record<string, { mark: string; look: (url: string) => Promise<unknown> }> = {
  SQLite: {
    mark: 'PRAGMA user_version = 99',
    look: async (url) => readFileSync(fileURLToPath(url)),
  },
  PostgreSQL: {
    mark: "UPDATE meta SET value = '99' WHERE key IN ('version', 'compatible')",
    look: async (url) => {
      const database = new URL(url).pathname.slice(1)
      const server = await sharedServer()
      return [
        await server.query('SELECT * FROM meta ORDER BY key', database),
        await server.query('SELECT oid, relname FROM pg_class ORDER BY oid', database),
      ]
    },
  },
}

for (const engine of engines) {
  tap.test(`a log on ${engine.name}`, async (t) => {
    t.test('keeps a mark along with its batch, also when nothing is added', async (t) => {
      const store = await openNew(t, engine)
      const marks = async () =>
        (await store.sql.select("SELECT value FROM meta WHERE key = 'far'")).map(({ value }) => value)
      await store.sql.execute("INSERT INTO meta VALUES ('far', '0')")
      await store.log.append([entry('a', 1)], undefined, { key: 'far', value: '1', before: '0' })
      t.strictSame(await marks(), ['1'])
      t.strictSame(
        await store.log.append([entry('a', 1)], undefined, { key: 'far', value: '2', before: '1' }),
        ['replayed'],
      )
      t.strictSame(await marks(), ['2'])
      t.equal(await countPlants(store), 1)
    })

    t.test('adds nothing under a mark that another has moved', async (t) => {
      const store = await openNew(t, engine)
      await store.sql.execute("INSERT INTO meta VALUES ('far', '7')")
      const late = store.log.append([entry('a', 1)], undefined, { key: 'far', value: '2', before: '1' })
      await t.rejects(late, { name: 'StoreUnavailable', outcome: 'nothing-added' })
      t.equal(await countPlants(store), 0)
      await store.log.append([entry('a', 1)], undefined, { key: 'far', value: '8', before: '7' })
      t.equal(await countPlants(store), 1)
    })

    t.test('keeps a checksum with each row, which nobody can change a row under', async (t) => {
      const store = await openNew(t, engine)
      await store.log.append([entry('{"name":"🌵 ñ"}', 7), entry('b')])
      const rows = await store.sql.select('SELECT checksum FROM plants ORDER BY position')
      t.strictSame(
        rows.map(({ checksum }) => checksum),
        [checksumOf(1, 7, '{"name":"🌵 ñ"}'), checksumOf(2, null, 'b')],
      )
      t.not(checksumOf(1, null, 'b'), checksumOf(2, null, 'b'))
      for (const column of ['position', 'id', 'item'])
        await t.rejects(store.sql.execute(`UPDATE plants SET ${column} = ${column} WHERE position = 2`))
      t.equal(await store.sql.execute('UPDATE plants SET checksum = NULL WHERE position = 2'), 1)
    })

    t.test('does what the oracle says, batch by batch', async (t) => {
      tellSeed(t)
      const store = await openNew(t, engine)
      const oracle = new Oracle()
      const { items } = oracle
      const property = fc.asyncProperty(anyBatch, async (batch) => {
        const start = items.length
        t.strictSame(await store.log.append(batch), oracle.append(batch), 'the same outcomes')
        t.equal(await countPlants(store), items.length)
        t.equal(await readText(store, start, batch.length), items.slice(start).join())
      })
      // The log goes on from batch to batch: a failure cannot be shrunk.
      await fc.assert(property, { seed, numRuns: 100, endOnFailure: true })
      t.equal(await readText(store, 0, items.length), items.join())
    })

    t.test('reads any range of positions, joined exactly', async (t) => {
      const store = await openNew(t, engine)
      const items = Array.from({ length: 12 }, (_, index) => `{"name":"plant ${index}"}`)
      await store.log.append(items.slice(0, 5).map((item) => entry(item)))
      await store.log.append(items.slice(5).map((item) => entry(item)))
      for (let after = 0; after <= items.length; after++)
        for (const count of [0, 1, 3, items.length, 2 ** 40])
          t.equal(await readText(store, after, count), items.slice(after, after + count).join())
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
      const rows = await store.sql.select('SELECT position, item FROM plants ORDER BY position')
      t.strictSame(
        rows.map((row) => ({ ...row })),
        [
          { position: 1, item: '"0.0"' },
          { position: 2, item: '"1.1"' },
          { position: 3, item: '"2.2"' },
        ],
      )
    })

    t.test('takes 4096 of the longest plants at once', async (t) => {
      const store = await openNew(t, engine)
      const batch = Array.from({ length: 4096 }, (_, id) => entry(`"${id} ${'x'.repeat(2060)}"`, id))
      // On a busy machine it may take longer than the store waits: what was added without a word is found again.
      const append = async () => new Set(await eventually(() => store.log.append(batch), patienceMs))
      t.match([...(await append())].join(), /^(added|replayed)$/)
      t.strictSame([...(await append())], ['replayed'])
      t.equal(await countPlants(store), 4096)
      t.equal(await readText(store, 4095, 1), batch[4095]?.item)
    })

    t.test('appends all of a batch or nothing', async (t) => {
      const store = await openNew(t, engine)
      const impossible = store.log.append([entry('"a"'), entry('"b"', 1.5), entry('"c"')])
      await t.rejects(impossible, { name: 'StoreUnavailable', outcome: 'nothing-added' })
      t.equal(await countPlants(store), 0)
      t.strictSame(await store.log.append([entry('"d"'), entry('"e"', 2)]), ['added', 'added'])
      t.equal(await readText(store, 0, 9), '"d","e"')
    })

    t.test('refuses to change or remove a plant, in the database itself', async (t) => {
      const store = await openNew(t, engine)
      await store.log.append([entry('"a"'), entry('"b"')])
      const statements = [
        "UPDATE plants SET item = '0' WHERE position = 1",
        'DELETE FROM plants WHERE position = 2',
      ]
      if (engine.name === 'PostgreSQL') statements.push('TRUNCATE plants')
      for (const statement of statements)
        await t.rejects(
          store.sql.execute(statement),
          { constructor: StoreUnavailable, message: /append-only/ },
          statement,
        )
      t.equal(await readText(store, 0, 9), '"a","b"')
    })

    t.test('is seen by two stores on one database at once', async (t) => {
      const url = await engine.createDatabase(t)
      const stores = [await open(t, url), await open(t, url)] as const
      t.equal(stores[0].id, stores[1].id)
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

    t.test('keeps its plants and its name when it is closed and opened', async (t) => {
      const url = await engine.createDatabase(t)
      const first = await openStore(url, { logger })
      await first.log.append([entry('"a"', 7)])
      await first.close()
      const second = await open(t, url)
      t.equal(second.id, first.id)
      t.match(second.id, /^[\w-]{22}$/)
      t.equal(await readText(second, 0, 9), '"a"')
      t.not((await openNew(t, engine)).id, first.id)
    })

    t.test('gives exactly what was asked for, or nothing', async (t) => {
      const store = await openNew(t, engine)
      await store.log.append([entry('"a"'), entry('"b"')])
      const { epochs } = await store.log.head()
      t.equal(String(await store.log.read(0, 2, epochs.owner(2))), '["a","b"]')
      t.equal(String(await store.log.read(2, 2, epochs.owner(2))), '[]')
      t.equal(String(await store.log.read(0, 0, '')), '[]')
      const faults: [after: number, last: number, epoch: string][] = [
        [0, 3, epochs.owner(2)],
        [2, 3, epochs.owner(2)],
        [0, 2, 'another'],
        [0, 2, ''],
        [0, 0, epochs.owner(2)],
      ]
      for (const [after, last, epoch] of faults)
        await t.rejects(
          async () => store.log.read(after, last, epoch),
          { name: 'StoreUnavailable', outcome: 'unread' },
          `${after} to ${last} of '${epoch}'`,
        )
    })

    t.test('compares a retry by value, not by the order of its keys', async (t) => {
      const store = await openNew(t, engine)
      await store.log.append([entry('{"name":"a","tag":"b"}', 1)])
      const retries = ['{"tag":"b","name":"a"}', '{"name":"a","tag":"B"}', '{"name":"a"}']
      for (const [n, item] of retries.entries())
        t.strictSame(await store.log.append([entry(item, 1)]), [n === 0 ? 'replayed' : 'conflict'], item)
      t.equal(await readText(store, 0, 9), '{"name":"a","tag":"b"}', 'what was there first stays')
    })

    t.test('of a newer version is refused and left as it is', async (t) => {
      const url = await engine.createDatabase(t)
      const store = await openStore(url, { logger })
      const { mark, look } = newer[engine.name] as (typeof newer)[string]
      await store.sql.execute(mark)
      await store.close()
      const before = await look(url)
      await t.rejects(openStore(url, { logger }), { constructor: StoreRefused, message: /newer plant-store/ })
      t.strictSame(await look(url), before)
    })

    t.test('has portable SQL beside it', async (t) => {
      const { sql } = await openNew(t, engine)
      const insert = `INSERT INTO tokens (id, name, hash, scopes, created_at) VALUES ($1, $2, '', '', $3)`
      t.equal(await sql.execute(insert, ['a', '🌵', 2 ** 53 - 1]), 1)
      t.equal(await sql.execute(insert, ['b', "'", -(2 ** 53) + 1]), 1)
      const rows = await sql.select('SELECT id, name, created_at, revoked_at FROM tokens WHERE id = $1', [
        'a',
      ])
      t.strictSame({ ...rows[0] }, { id: 'a', name: '🌵', created_at: 2 ** 53 - 1, revoked_at: null })
      t.equal(await sql.execute('UPDATE tokens SET revoked_at = $1', [1]), 2)
      t.equal(await sql.execute('DELETE FROM tokens WHERE id = $1', ['c']), 0)
    })
  })
}
