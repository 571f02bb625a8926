// A SQLite store that several threads of a process share: the same plants, one writer, and what one of them does, or does
// not live to do, is no fault of the others.
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import type { MessagePort } from 'node:worker_threads'
import pino from 'pino'
import { type Test, test } from 'tap'
import { openStore } from '../../src/store/open.ts'
import type { Attachment } from '../../src/store/sqlite/writer/writer-messages.ts'
import type { FailedOutcome, Outcome, Store } from '../../src/store/store.ts'
import { move } from '../support/outside.ts'
import { add, entry, listNames, openFile, recovered, unavailable } from '../support/stores.ts'
import { watchWorkers } from '../support/workers.ts'

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

/** SQLite cannot open that: the writer lets go of the database, and ends. */
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

test('when the writer ends both have the next one', async (t) => {
  const threads = watchWorkers(t)
  const { store, shared } = await openShared(t)
  await add(shared, 'a')
  await threads[0]?.terminate()
  await recovered(shared)
  await add(shared, 'b')
  await add(store, 'c')
  t.strictSame(await listNames(shared), ['a', 'b', 'c'])
})

test('a writer that is started again takes nothing before it is ready', async (t) => {
  const threads = watchWorkers(t)
  const { store, shared } = await openShared(t)
  for (let round = 1; round <= 3; round++) {
    await t.rejects(store.sql.execute(breaking), unavailable('nothing-added'))
    const adding: Promise<Outcome | FailedOutcome>[] = []
    const outcomeOf = (to: Store) =>
      add(to, 'x').then(
        ([outcome]) => outcome as Outcome,
        ({ outcome }) => outcome,
      )
    while (threads.length === round) {
      adding.push(outcomeOf(store), outcomeOf(shared))
      await turn()
    }
    // From here on there is a thread whose database is not open yet.
    for (let n = 0; n < 10; n++) {
      adding.push(outcomeOf(store), outcomeOf(shared))
      await turn()
    }
    const outcomes = await Promise.all(adding)
    // The other thread may hear of the end only after it has sent something, which has not begun then.
    t.strictSame(
      outcomes.filter((outcome, n) => outcome !== 'added' && (n % 2 === 0 || outcome !== 'nothing-added')),
      [],
    )
    t.equal(threads.length, round + 1, 'one thread took the place of the one before')
  }
})

test('of what another thread has sent to a writer that ends, nothing is added and the thread is told so', async (t) => {
  const { store, shared, path } = await openShared(t)
  await add(shared, 'a')
  const other = new DatabaseSync(path)
  other.exec('BEGIN IMMEDIATE')
  // The writer waits for the lock with the first of them; what comes behind it has not begun when it ends.
  const answers = [store.sql.execute(breaking), add(shared, 'b'), add(store, 'c')].map((answer) =>
    answer.catch(({ outcome }) => outcome),
  )
  other.exec('ROLLBACK')
  other.close()
  const [broken, ...outcomes] = await Promise.all(answers)
  t.equal(broken, 'nothing-added')
  for (const outcome of outcomes) t.notMatch(outcome, 'unknown')
  await recovered(store)
  t.strictSame(await add(shared, 'd'), ['added'])
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
  port.postMessage('attach')
  const [message] = await once(port, 'message')
  const { writer } = (message as { attach: Attachment }).attach
  t.teardown(() => writer.close())
  writer.postMessage({ text: breaking, values: {}, number: 1, deadlineMs: Number.MAX_SAFE_INTEGER })
  const [answer] = await once(writer, 'message')
  t.match(answer, { number: 1, outcome: 'nothing-added', broken: true })
  await recovered(store)
  t.strictSame(await store.log.append([entry('a', 1)]), ['added'])
  t.match(lines[0], { msg: 'the database failed' })
})

test('a thread is told of what it cannot read, and of a store that is closed', async (t) => {
  const { store, shared } = await openShared(t)
  await t.rejects(shared.sql.select('no SQL at all'), unavailable('unread'))
  await store.close()
  await t.rejects(add(shared, 'a'), { ...unavailable('nothing-added'), message: 'the store is closed' })
  await shared.close()
})
