// A SQLite store that several threads of a process share: the same plants, one writer, and what one of them does, or does
// not live to do, is no fault of the others.
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import pino from 'pino'
import { type Test, test } from 'tap'
import { collect } from '../../src/runtime/garbage.ts'
import { move } from '../support/outside.ts'
import { openStore } from '../support/sql-store.ts'
import { add, entry, listNames, openFile, recovered, unavailable } from '../support/stores.ts'
import { until } from '../support/until.ts'

/** A store, and what shares it: for that it makes no difference that both are in one thread here. */
async function openShared(t: Test) {
  const file = await openFile(t)
  const shared = await openStore(`file:${file.path}`, {
    logger: pino({ level: 'silent' }),
    port: file.store.share?.(),
  })
  t.teardown(() => shared.close())
  return { ...file, shared }
}

/** SQLite cannot open that: the writer lets go of the database, and opens it anew. */
const breaking = "ATTACH '/nowhere/at/all' AS other"

test('what one of them adds is in the other at once, and batches that come together are one transaction', async (t) => {
  const { store, shared } = await openShared(t)
  t.equal(shared.id, store.id)
  await add(store, 'a')
  await add(shared, 'b', 'c')
  t.strictSame(await listNames(shared), ['a', 'b', 'c'])
  await Promise.all([add(store, 'd'), add(shared, 'e'), add(store, 'f'), add(shared, 'g')])
  t.strictSame((await listNames(store)).sort(), ['a', 'b', 'c', 'd', 'e', 'f', 'g'])
  t.strictSame(await listNames(shared), await listNames(store))
  await t.rejects(async () => shared.log.read(0, 5, 'another'), unavailable('unread'))
})

test('while the files are lost both hear why, and both go on when they are back', async (t) => {
  const { store, shared, path } = await openShared(t)
  await add(store, 'a')
  move(path, `${path}.away`)
  for (const one of [store, shared]) {
    await t.rejects(one.ready(), { ...unavailable('nothing-added'), message: /plants\.db is gone/ })
    t.strictSame(await listNames(one), ['a'])
  }
  move(`${path}.away`, path)
  await recovered(shared)
  await add(shared, 'b')
  t.strictSame(await listNames(store), ['a', 'b'])
})

test('a writer that opens the file anew goes on for both, and shifts no answer', async (t) => {
  const { store, shared } = await openShared(t)
  const broken = t.rejects(store.sql.execute(breaking), unavailable('nothing-added'))
  const added = [add(shared, 'a'), add(store, 'b')]
  await broken
  t.strictSame(await Promise.all(added), [['added'], ['added']])
  t.strictSame((await listNames(shared)).sort(), ['a', 'b'])
})

test('a batch whose time is up fails none that another thread has in the same transaction', async (t) => {
  const { store, shared, path } = await openShared(t)
  const other = new DatabaseSync(path)
  other.exec('BEGIN IMMEDIATE')
  // The writer is busy with it until both batches are there.
  const refused = { name: 'StoreUnavailable' }
  const first = t.rejects(store.log.append([entry('a', 1)], performance.now() + 300), refused)
  const short = t.rejects(store.log.append([entry('b', 2)], performance.now() + 500), refused)
  const long = shared.log.append([entry('c', 3)])
  await Promise.all([first, short])
  other.close()
  t.strictSame(await long, ['added'])
  t.strictSame(await listNames(store), ['c'])
})

test('a writer that lets go of the file says so to the main thread, whichever thread it answers', async (t) => {
  const { store, lines } = await openFile(t)
  const port = store.share?.() as MessagePort
  t.teardown(() => port.close())
  t.match(receiveMessageOnPort(port), { message: [{}, {}, {}] }, 'first it is told the files')
  port.postMessage({ text: breaking, values: {}, number: 1, deadlineMs: Number.MAX_SAFE_INTEGER })
  const [answer] = await once(port, 'message')
  t.match(answer, { number: 1, outcome: 'nothing-added', broken: true })
  t.strictSame(await store.log.append([entry('a', 1)]), ['added'])
  await until(() => lines.length > 1)
  t.match(lines, [{ msg: 'the database failed' }, { msg: 'the database takes plants again' }])
})

test('a store is closed in time, though its writer waits for a lock', async (t) => {
  const { store, path } = await openFile(t)
  const other = new DatabaseSync(path)
  t.teardown(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  const added = add(store, 'a').catch(() => {})
  t.equal(await Promise.race([store.close().then(() => 'closed'), added.then(() => 'refused')]), 'closed')
})

test('a store keeps nothing of what it has added', async (t) => {
  const { store } = await openFile(t)
  const outcomes: WeakRef<object>[] = []
  for (let n = 0; n < 100; n++) outcomes.push(new WeakRef(await add(store, 'a')))
  collect('major')
  await setImmediate()
  t.ok(outcomes.filter((one) => one.deref() !== undefined).length < 10)
})

test('a thread is told of what it cannot read, and of a store that is closed', async (t) => {
  const { store, shared } = await openShared(t)
  await t.rejects(shared.sql.select('no SQL at all'), unavailable('unread'))
  await store.close()
  await t.rejects(add(shared, 'a'), { name: 'StoreUnavailable' })
  await t.rejects(add(shared, 'a'), unavailable('nothing-added'))
  await shared.close()
})

test('a file that another program has locked is refused, and opened once it is free', async (t) => {
  const path = `${t.testdir()}/plants.db`
  const open = () => openStore(`file:${path}`, { logger: pino({ level: 'silent' }) })
  const other = new DatabaseSync(path)
  other.exec('BEGIN EXCLUSIVE')
  await t.rejects(open(), { name: 'Error', message: /locked/ })
  other.close()
  const store = await open()
  t.strictSame(await add(store, 'a'), ['added'])
  await store.close()
})
