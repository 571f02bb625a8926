// A SQLite store that several threads of a process share, seen from its ports: what one of them does, or does not live
// to do, is no fault of the others.
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import type { MessagePort } from 'node:worker_threads'
import pino from 'pino'
import { type Test, test } from 'tap'
import { openStore } from '../src/store/open.ts'
import type { Bind } from '../src/store/sqlite/messages.ts'
import type { Store } from '../src/store/store.ts'
import { entry, listNames, openFile, recovered, unavailable } from './support/stores.ts'

type Share = Bind & { port: MessagePort }

/** What a thread with a share is told of the open files. */
async function bind(t: Test, { share }: Store, port = share?.() as MessagePort): Promise<Share> {
  t.teardown(() => port.close())
  port.postMessage('bind')
  const [answer] = await once(port, 'message')
  const { bind } = answer as { bind: Bind }
  t.teardown(() => bind.writer.close())
  return { ...bind, port }
}

test('a thread that ends while it looks at the wal-index holds up nobody', async (t) => {
  const { store } = await openFile(t)
  const { index, looker, port } = await bind(t, store)
  Atomics.store(new Int32Array(index.lock), 0, looker)
  const adding = store.log.append([entry('a', 1)])
  port.close()
  t.strictSame(await adding, ['added'])
})

test('a thread that hangs while it looks keeps the others from theirs for a moment only', async (t) => {
  const { store } = await openFile(t)
  const { index, looker, port } = await bind(t, store)
  Atomics.store(new Int32Array(index.lock), 0, looker)
  // The main thread looks at the files.
  port.postMessage('check')
  await bind(t, store, port)
  port.close()
  t.strictSame(await store.log.append([entry('a', 1)]), ['added'])
})

test('a batch whose time is up fails none that another thread has in the same transaction', async (t) => {
  const { store, path } = await openFile(t)
  const logger = pino({ level: 'silent' })
  const branch = await openStore(`file:${path}`, { logger, port: store.share?.() })
  t.teardown(() => branch.close())
  const other = new DatabaseSync(path)
  other.exec('BEGIN IMMEDIATE')
  // The writer is busy with it until both batches are there.
  const first = t.rejects(
    store.log.append([entry('a', 1)], performance.now() + 300),
    unavailable('nothing-added'),
  )
  const short = t.rejects(
    store.log.append([entry('b', 2)], performance.now() + 500),
    unavailable('nothing-added'),
  )
  const long = branch.log.append([entry('c', 3)])
  await Promise.all([first, short])
  other.close()
  t.strictSame(await long, ['added'])
  t.strictSame(await listNames(store), ['c'])
})

test('a writer that lets go of the file says so to the main thread, whichever thread it answers', async (t) => {
  const { store, lines } = await openFile(t)
  const { writer } = await bind(t, store)
  const text = "ATTACH '/nowhere/at/all' AS other"
  writer.postMessage({ text, values: {}, number: 1, deadlineMs: Number.MAX_SAFE_INTEGER })
  const [answer] = await once(writer, 'message')
  t.match(answer, { number: 1, outcome: 'nothing-added', broken: true })
  await recovered(store)
  t.strictSame(await store.log.append([entry('a', 1)]), ['added'])
  t.match(lines[0], { msg: /^the database failed: / })
})

test('a thread is told of what it cannot read, and of a store that is closed', async (t) => {
  const { store, path } = await openFile(t)
  const logger = pino({ level: 'silent' })
  const branch = await openStore(`file:${path}`, { logger, port: store.share?.() })
  await t.rejects(branch.sql.select('no SQL at all'), unavailable('unread'))
  await store.close()
  await t.rejects(branch.log.append([entry('a', 1)]), {
    ...unavailable('nothing-added'),
    message: 'the store is closed',
  })
  await branch.close()
})
