// A SQLite store that another thread has open through the port of the first: the same plants, one writer, and the first
// alone opens, watches and exchanges the files.
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import type { Worker } from 'node:worker_threads'
import pino from 'pino'
import { type Test, test } from 'tap'
import { openStore } from '../src/store/open.ts'
import type { Store } from '../src/store/store.ts'
import { add, listNames, openFile, unavailable } from './support/stores.ts'

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

const suffixes = ['', '-wal', '-shm']

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

test('while no good file is there the other one hears why; afterwards both have it', async (t) => {
  const { store, shared, path } = await openShared(t)
  await add(store, 'a')
  for (const suffix of suffixes) renameSync(path + suffix, `${path}.away${suffix}`)
  writeFileSync(path, 'no database'.repeat(100))
  await until(store, /is not a plant store|not a database/)
  await until(shared, /is not a plant store|not a database/)
  rmSync(path)
  for (const suffix of suffixes) renameSync(`${path}.away${suffix}`, path + suffix)
  await until(shared, undefined)
  await add(shared, 'b')
  t.strictSame(await listNames(shared), ['a', 'b'])
  t.strictSame(await listNames(store), ['a', 'b'])
})

test('when the writer ends both have the next one', async (t) => {
  const threads: Worker[] = []
  const note = (thread: Worker) => threads.push(thread)
  process.on('worker', note)
  t.teardown(() => process.off('worker', note))
  const { store, shared } = await openShared(t)
  await add(shared, 'a')
  await threads[0]?.terminate()
  await until(shared, undefined)
  await add(shared, 'b')
  await add(store, 'c')
  t.strictSame(await listNames(shared), ['a', 'b', 'c'])
})

test('when the store is closed what shares it is told so', async (t) => {
  const { store, shared } = await openShared(t)
  await store.close()
  await t.rejects(add(shared, 'a'), unavailable('nothing-added'))
})

/** Asks a store until the reason why it cannot be written is this one; undefined: until it can be. */
async function until({ ready }: Store, reason: RegExp | undefined): Promise<void> {
  for (;;) {
    const failed = await ready().then(
      () => undefined,
      ({ message }: Error) => message,
    )
    if (reason === undefined ? failed === undefined : reason.test(String(failed))) return
  }
}
