// The writer of a SQLite store: locks, time-outs, full disks, and databases that must be opened again.
import { once } from 'node:events'
import { linkSync, readdirSync, readlinkSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Worker } from 'node:worker_threads'
import { type Test, test } from 'tap'
import { attempt } from '../../src/attempt.ts'
import { version } from '../../src/store/sql/schema.ts'
import { marginMs } from '../../src/store/sqlite/locks.ts'
import { openRequests } from '../../src/store/sqlite/writer.ts'
import type { Request } from '../../src/store/sqlite/writer-thread.ts'
import { createDirectory } from '../support/engines.ts'
import { assertWithin } from '../support/full.ts'
import { add, entry, listNames, openFile, unavailable } from '../support/stores.ts'

/** Another connection that holds the write lock. */
function lock(t: Test, path: string): DatabaseSync {
  const other = new DatabaseSync(path)
  t.teardown(() => other.isOpen && other.close())
  other.exec('BEGIN IMMEDIATE')
  return other
}

/** Fails in SQLite, so that the writer closes the database and opens it again for the next request. */
const breaking = "ATTACH '/nowhere/at/all' AS other"

test('reports a full disk with the path of the file', async (t) => {
  const { store, path, lines } = await openFile(t)
  await store.log.append([entry('before', 1)])
  // SQLite reports its own size limit as a full disk; the smallest limit is the current size.
  await store.sql.execute('PRAGMA max_page_count = 1')
  const names = Array(1000).fill('x'.repeat(255))
  await t.rejects(add(store, ...names), { message: new RegExp(`: ${path}$`), outcome: 'nothing-added' })
  for (const probe of [[], [entry('before', 1)]]) await store.log.append(probe)
  t.equal(lines.length, 1, 'a probe or a replay reports no recovery')
  await store.sql.execute('PRAGMA max_page_count = 1000000')
  await add(store, 'with room again')
  t.match(lines[1], { level: 30 })
  t.strictSame(await listNames(store), ['before', 'with room again'])
})

test('a probe reports the end of any other outage', async (t) => {
  const { store, lines } = await openFile(t)
  await t.rejects(store.sql.execute(breaking))
  await store.log.append([])
  t.match(lines, [{ level: 40 }, { level: 30, msg: 'plants can be added to the database again' }])
})

test('opens the file again after an I/O error, once it is back at its path', async (t) => {
  const { store, path, lines } = await openFile(t)
  await add(store, 'a')
  await t.rejects(store.sql.execute(breaking), unavailable('nothing-added'))
  renameSync(path, `${path}.away`)
  const moved = { ...unavailable('nothing-added'), message: `${path} was moved or deleted` }
  await t.rejects(add(store, 'lost'), moved)
  renameSync(`${path}.away`, path)
  // Only a new process could look for the log beside the other name.
  linkSync(path, `${path}.link`)
  for (let n = 0; n < 2; n++) await t.rejects(store.sql.execute(breaking))
  t.strictSame(await add(store, 'b'), ['added'])
  t.strictSame(await listNames(store), ['a', 'b'])
  t.match(lines[0], { msg: 'plants cannot be added to the database' })
})

test('reports an unknown outcome when the writer thread ends, and adds nothing afterwards', async (t) => {
  const started = once(process, 'worker')
  const { store, path } = await openFile(t)
  lock(t, path)
  const waiting = t.rejects(add(store, 'a'), unavailable('unknown'))
  const [thread] = (await started) as [Worker]
  await thread.terminate()
  await waiting
  await t.rejects(add(store, 'b'), unavailable('nothing-added'))
  t.strictSame(await listNames(store), [], 'lists continue')
})

test('refuses batches until the file can be opened again, and gives later ones their own outcomes', async (t) => {
  const { store, path } = await openFile(t)
  await store.log.append([entry('a', 1)])
  for (let round = 0; round < 3; round++) {
    await t.rejects(store.sql.execute(breaking), unavailable('nothing-added'))
    const other = new DatabaseSync(path)
    other.exec('PRAGMA user_version = 99')
    await Promise.all(
      ['b', 'c', 'd'].map((name) => t.rejects(add(store, name), unavailable('nothing-added'))),
    )
    other.exec(`PRAGMA user_version = ${version}`)
    other.close()
    const [replayed, conflict, both] = await Promise.all([
      store.log.append([entry('a', 1)]),
      store.log.append([entry('x', 1)]),
      store.log.append([entry('a', 1), entry(`${round}`, 10 + round)]),
    ])
    t.strictSame([replayed, conflict, both], [['replayed'], ['conflict'], ['replayed', 'added']])
  }
  t.strictSame(await listNames(store), ['a', '0', '1', '2'])
  const open = process.platform === 'linux' ? readdirSync('/proc/self/fd') : []
  const links = open.map((descriptor) => attempt(() => readlinkSync(`/proc/self/fd/${descriptor}`)))
  t.ok(links.filter((link) => link === path).length <= 6, 'no descriptor stays open')
})

test('refuses batches by their deadline while the file is locked, and adds none later', async (t) => {
  const { store, path } = await openFile(t)
  const other = lock(t, path)
  const startMs = performance.now()
  const late = ['a', 'b', 'c'].map((name) => store.log.append([entry(name)], { deadlineMs: startMs + 700 }))
  await Promise.all(late.map((answer) => t.rejects(answer, { name: 'StoreUnavailable' })))
  assertWithin(t, performance.now() - startMs, 2000, 'including the time in the queue')
  await t.rejects(store.log.append([]), unavailable('nothing-added'))
  other.close()
  await store.log.append([])
  t.strictSame(await add(store, 'd'), ['added'])
  t.strictSame(await listNames(store), ['d'])
})

test('refuses a batch just before its deadline, and adds the next one', async (t) => {
  const { store } = await openFile(t)
  const soon = performance.now() + marginMs / 2
  await t.rejects(store.log.append([entry('late')], { deadlineMs: soon }), unavailable('nothing-added'))
  t.strictSame(await add(store, 'in time'), ['added'])
  t.strictSame(await listNames(store), ['in time'])
})

test('reports an unknown outcome if COMMIT fails', async (t) => {
  const { store } = await openFile(t)
  const { execute } = store.sql
  await execute('CREATE TABLE owner (id INTEGER PRIMARY KEY)')
  await execute('CREATE TABLE owned (id INTEGER REFERENCES owner DEFERRABLE INITIALLY DEFERRED)')
  await execute(
    "CREATE TRIGGER full AFTER INSERT ON plants WHEN new.item LIKE '%bad%' BEGIN INSERT INTO owned VALUES (1); END",
  )
  await t.rejects(add(store, 'bad'), unavailable('unknown'))
  await add(store, 'b')
  t.strictSame(await listNames(store), ['b'])
})

test('copies the log into the file when it has 4000 pages, not before', async (t) => {
  const { store, path } = await openFile(t)
  const { size } = statSync(path)
  const items = Array(6000).fill('x'.repeat(1000))
  await add(store, ...items)
  t.equal(statSync(path).size, size, 'SQLite would ignore an error')
  for (let n = 0; n < 2; n++) await add(store, ...items)
  t.ok(statSync(path).size > size)
})

test('refuses further requests while one is overdue', async (t) => {
  const posted: (Request | 'close')[] = []
  const requests = openRequests((order) => posted.push(order))
  const probe = { items: [], ids: [] }
  await t.rejects(requests.send(probe, performance.now()), unavailable('unknown'))
  const laterMs = performance.now() + 60_000
  await t.rejects(requests.send(probe, laterMs), unavailable('nothing-added'))
  t.equal(posted.length, 1)
  requests.answer({ done: 0 })
  const answered = requests.send(probe, laterMs)
  requests.answer({ done: 7 })
  t.equal(await answered, 7)
})

test('closes in time even while its writer waits for a lock', async (t) => {
  const { store, path } = await openFile(t)
  lock(t, path)
  const added = add(store, 'a').catch(() => {})
  t.equal(await Promise.race([store.close().then(() => 'closed'), added.then(() => 'refused')]), 'closed')
})

test('refuses a file that another program has locked, until it is free', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  for (const lock of ['BEGIN EXCLUSIVE', 'PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE']) {
    const other = new DatabaseSync(path)
    other.exec(lock)
    await t.rejects(openFile(t, path), { message: /: the database is locked by another program$/ })
    other.close()
    await (await openFile(t, path)).store.close()
  }
  const { store } = await openFile(t, path)
  t.strictSame(await add(store, 'a'), ['added'])
})
