import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import { type Test, test } from 'tap'
import { sqliteMarginMs } from '../../src/limits.ts'
import { migrations } from '../../src/store/format/migrations.ts'
import { openRequests } from '../../src/store/sqlite/writer/writer-handle.ts'
import type { Answer } from '../../src/store/sqlite/writer/writer-messages.ts'
import { createDirectory } from '../support/engines.ts'
import { assertWithin } from '../support/full.ts'
import type { Store } from '../support/sql-store.ts'
import { add, entry, listNames, openFile, unavailable } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { watchWorkers } from '../support/workers.ts'

const released = fileURLToPath(new URL('../fixtures/plants-1.0.0.db', import.meta.url))

async function end(thread: Worker | undefined): Promise<void> {
  const ended = once(thread as Worker, 'exit')
  await thread?.terminate()
  await ended
}

test('a disk that is full is told with the file that is on it', async (t) => {
  const { store, path } = await openFile(t)
  // SQLite's own bound of a file is the same to it as a full disk; the least is the size that the file has.
  await store.sql.execute('PRAGMA max_page_count = 1')
  const item = JSON.stringify({ name: 'x'.repeat(255), tag: '' })
  const entries = Array.from({ length: 1000 }, () => ({ item, id: undefined }))
  await t.rejects(store.log.append(entries), { message: new RegExp(`: ${path}$`), outcome: 'nothing-added' })
  await store.sql.execute('PRAGMA max_page_count = 1000000')
  await add(store, 'with room again')
  t.strictSame(await listNames(store), ['with room again'])
})

/** Another connection that holds the write lock. */
function lock(t: Test, path: string): DatabaseSync {
  const other = new DatabaseSync(path)
  t.teardown(() => other.isOpen && other.close())
  other.exec('BEGIN IMMEDIATE')
  return other
}

async function countEpochs({ sql }: Store): Promise<number> {
  return (await sql.select('SELECT number FROM epochs')).length
}

test('an empty file becomes a store', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  writeFileSync(path, '')
  const { store } = await openFile(t, path)
  t.strictSame(await add(store, 'a'), ['added'])
})

/** SQLite cannot open that: the writer lets go of the database. */
const breaking = "ATTACH '/nowhere/at/all' AS other"

test('a writer that let go while its file is away opens it once the file is back', async (t) => {
  const { store, path } = await openFile(t)
  await add(store, 'a')
  await t.rejects(store.sql.execute(breaking), unavailable('nothing-added'))
  renameSync(path, `${path}.away`)
  await t.rejects(add(store, 'lost'), { ...unavailable('nothing-added'), message: `${path} is gone` })
  renameSync(`${path}.away`, path)
  t.strictSame(await add(store, 'b'), ['added'])
  t.strictSame(await listNames(store), ['a', 'b'])
})

test('a writer thread that ends leaves the outcome unknown, and nothing is added from then on', async (t) => {
  const threads = watchWorkers(t)
  const { store, path } = await openFile(t)
  lock(t, path)
  const waiting = t.rejects(add(store, 'a'), unavailable('unknown'))
  await end(threads[0])
  await waiting
  await t.rejects(add(store, 'b'), unavailable('nothing-added'))
})

test('a refused opening while batches wait does not mix up their answers', async (t) => {
  const { store, path } = await openFile(t)
  await store.log.append([entry('a', 1)])
  for (let round = 0; round < 3; round++) {
    await t.rejects(store.sql.execute(breaking), unavailable('nothing-added'))
    const other = new DatabaseSync(path)
    other.exec('PRAGMA user_version = 99')
    await Promise.all(
      ['b', 'c', 'd'].map((name) => t.rejects(add(store, name), unavailable('nothing-added'))),
    )
    other.exec(`PRAGMA user_version = ${migrations.length}`)
    other.close()
    // Each of these has an outcome of its own.
    const [replayed, conflict, both] = await Promise.all([
      store.log.append([entry('a', 1)]),
      store.log.append([entry('x', 1)]),
      store.log.append([entry('a', 1), entry(`${round}`, 10 + round)]),
    ])
    t.strictSame([replayed, conflict, both], [['replayed'], ['conflict'], ['replayed', 'added']])
  }
  t.strictSame(await listNames(store), ['a', '0', '1', '2'])
})

test('a locked file: each batch is refused by its deadline, and none is added afterwards', async (t) => {
  const { store, path } = await openFile(t)
  const other = lock(t, path)
  const startMs = performance.now()
  const late = ['a', 'b', 'c'].map((name) => store.log.append([entry(name)], startMs + 700))
  await Promise.all(late.map((answer) => t.rejects(answer, { name: 'StoreUnavailable' })))
  assertWithin(t, performance.now() - startMs, 2000, 'the time they waited in line counts')
  await t.rejects(store.ready(), unavailable('nothing-added'))
  other.close()
  await store.ready()
  t.strictSame(await add(store, 'd'), ['added'])
  t.strictSame(await listNames(store), ['d'])
})

test('a batch that is nearly too late when it reaches the thread is refused, and the next one is added', async (t) => {
  const { store } = await openFile(t)
  const soon = performance.now() + sqliteMarginMs / 2
  await t.rejects(store.log.append([entry('late')], soon), unavailable('nothing-added'))
  t.strictSame(await add(store, 'in time'), ['added'])
  t.strictSame(await listNames(store), ['in time'])
})

test('a batch that waits for a lock is added when it is free', async (t) => {
  const { store, path } = await openFile(t)
  const other = lock(t, path)
  const answer = add(store, 'a')
  other.exec('COMMIT')
  t.strictSame(await answer, ['added'])
})

test('an epoch begins with the first plant after each opening, and only then', async (t) => {
  const first = await openFile(t)
  t.equal(await countEpochs(first.store), 1, 'that of a new store')
  await first.store.ready()
  await first.store.sql.execute("DELETE FROM tokens WHERE id = 'none'")
  t.equal(await countEpochs(first.store), 1)
  await first.store.log.append([entry('a', 1), entry('b')])
  await add(first.store, 'c')
  t.equal(await countEpochs(first.store), 2)
  const { epochs } = await first.store.log.head()
  await first.store.close()

  const { store } = await openFile(t, first.path)
  await store.log.append([entry('a', 1), entry('x', 1)])
  t.equal(await countEpochs(store), 2, 'a retry and a conflict begin none')
  t.equal((await store.log.head()).epochs.latest, epochs.latest)
  await add(store, 'd')
  t.equal(await countEpochs(store), 3)
  const { epochs: after } = await store.log.head()
  t.strictSame(
    [1, 2, 3].map((position) => after.owner(position)),
    [1, 2, 3].map((position) => epochs.owner(position)),
  )
  t.not(after.owner(4), epochs.latest)
  await t.rejects(store.sql.execute(breaking), unavailable('nothing-added'))
  await add(store, 'e')
  t.equal(await countEpochs(store), 4, 'to open it anew is another opening')
})

test('an epoch whose batch failed begins with the next one', async (t) => {
  const { store } = await openFile(t)
  await store.sql.execute(
    "CREATE TRIGGER full BEFORE INSERT ON plants WHEN new.item LIKE '%bad%' BEGIN SELECT raise(ABORT, 'full'); END",
  )
  await t.rejects(add(store, 'a', 'bad'), unavailable('nothing-added'))
  t.equal(await countEpochs(store), 1)
  await add(store, 'b')
  t.equal(await countEpochs(store), 2)
  t.strictSame(await listNames(store), ['b'])
})

test('an epoch whose commit failed begins with the next one', async (t) => {
  const { store } = await openFile(t)
  const { execute } = store.sql
  await execute('CREATE TABLE owner (id INTEGER PRIMARY KEY)')
  await execute('CREATE TABLE owned (id INTEGER REFERENCES owner DEFERRABLE INITIALLY DEFERRED)')
  // It is looked at when all of the batch, and its epoch, is in the transaction.
  await execute(
    "CREATE TRIGGER full AFTER INSERT ON plants WHEN new.item LIKE '%bad%' BEGIN INSERT INTO owned VALUES (1); END",
  )
  await t.rejects(add(store, 'bad'), unavailable('unknown'))
  await execute('DELETE FROM owned')
  t.equal(await countEpochs(store), 1, 'a statement between them begins none')
  await add(store, 'b')
  t.equal(await countEpochs(store), 2)
  t.strictSame(await listNames(store), ['b'])
})

test('a store that another process migrates further while it is opened is not set back', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  copyFileSync(released, path)
  const newer = new DatabaseSync(path)
  t.teardown(() => newer.isOpen && newer.close())
  newer.exec('PRAGMA journal_mode = WAL; BEGIN IMMEDIATE')
  const opening = t.rejects(openFile(t, path), { message: /schema version 99/ })
  // It has inspected the file, has it open to be written, and waits for the lock.
  await until(() => hasTwoWriters(path))
  newer.exec('PRAGMA user_version = 99; COMMIT')
  await opening
  t.equal(newer.prepare('PRAGMA user_version').get()?.user_version, 99)
})

/** The test itself has it open, too. Elsewhere than on Linux it cannot be seen, and the order is left to chance. */
function hasTwoWriters(path: string): boolean {
  if (!existsSync('/proc/self/fdinfo')) return true
  const writers = readdirSync('/proc/self/fd').filter((fd) => {
    try {
      if (readlinkSync(`/proc/self/fd/${fd}`) !== path) return false
      return (
        (Number.parseInt(
          /flags:\s+(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '',
          8,
        ) &
          2) ===
        2
      )
    } catch {
      return false
    }
  })
  return writers.length >= 2
}

test('two stores on one file that take turns see each other’s epochs at once', async (t) => {
  const one = await openFile(t)
  const two = await openFile(t, one.path)
  await add(one.store, 'a')
  await add(two.store, 'b')
  await add(one.store, 'c')
  const heads = [await one.store.log.head(), await two.store.log.head()]
  const owners = heads.map(({ epochs }) => [1, 2, 3].map((position) => epochs.owner(position)))
  t.strictSame(owners[0], owners[1])
  t.equal(new Set(owners[0]).size, 2)
})

test('errors of a read are logged once, and again when they are over', async (t) => {
  const { store, lines } = await openFile(t)
  for (let n = 0; n < 3; n++)
    await t.rejects(store.sql.select('SELECT 1 FROM nowhere'), unavailable('unread'))
  t.match(lines, [{ msg: 'the database cannot be read', reason: 'no such table: nowhere' }])
  t.equal(lines.length, 1)
  await store.log.head()
  t.equal(lines[1]?.msg, 'the database can be read again')
})

test('while a request is overdue further ones are refused, and none are once it is answered', async (t) => {
  const posted: number[] = []
  const { port1, port2 } = new MessageChannel()
  t.teardown(() => port1.close())
  port2.on('message', ({ number }) => posted.push(number))
  const answer = async (done: Answer): Promise<void> => {
    port2.postMessage(done)
    await once(port1, 'message')
  }
  const requests = openRequests(port1)
  const probe = { items: [], ids: [] }
  await t.rejects(requests.send(probe, performance.now()), unavailable('unknown'))
  const laterMs = performance.now() + 60_000
  await t.rejects(requests.send(probe, laterMs), unavailable('nothing-added'))
  await until(() => posted.length > 0)
  t.strictSame(posted, [1])
  await answer({ number: 1, done: 0 })
  const answered = requests.send(probe, laterMs)
  await answer({ number: 2, done: 7 })
  t.equal(await answered, 7)
})

test('a closed store takes no plants and opens no file', async (t) => {
  const { store } = await openFile(t)
  await store.close()
  await t.rejects(add(store, 'a'), unavailable('nothing-added'))
  await t.rejects(async () => store.log.head(), unavailable('unread'))
})
