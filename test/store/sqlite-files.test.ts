// The SQLite file is lost under the running service: nothing is acknowledged that the path does not hold, the operator
// is told once, and the service goes on by itself when a good file is there.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { existsSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import pino from 'pino'
import { test } from 'tap'
import { openStore } from '../src/store/open.ts'
import { createDirectory } from './support/engines.ts'
import { backUp, move, remove, truncate } from './support/outside.ts'
import { add, listNames, openFile, recovered, type SqliteFile, unavailable } from './support/stores.ts'

const silent = pino({ level: 'silent' })

/** `left`: which of the plants a, b and c are there afterwards. */
type Fault = {
  title: string
  strike: (file: SqliteFile) => void
  mend?: (file: SqliteFile) => void
  left: string
}

const faults: Fault[] = [
  {
    title: 'that is moved away and back',
    strike: ({ path }) => move(path, `${path}.away`),
    mend: ({ path }) => move(`${path}.away`, path),
    left: 'abc',
  },
  {
    title: 'that is deleted, and a backup put in its place',
    strike: ({ path }) => remove(path),
    mend: ({ path }) => move(`${path}.backup`, path),
    left: 'ab',
  },
  {
    title: 'that is replaced by a backup',
    strike: ({ path }) => move(`${path}.backup`, path),
    left: 'ab',
  },
  {
    title: 'that is cut to nothing, while its -wal still holds all of it',
    strike: ({ path }) => truncate(path, 0),
    left: 'abc',
  },
  {
    title: 'that is cut, and a backup put in its place',
    strike: ({ path }) => {
      emptyWal(path)
      truncate(path, 8192)
    },
    mend: ({ path }) => move(`${path}.backup`, path),
    left: 'ab',
  },
  {
    title: 'that is replaced by that of another store, and put back',
    strike: ({ path }) => {
      move(path, `${path}.away`)
      move(`${path}.other`, path)
    },
    mend: ({ path }) => move(`${path}.away`, path),
    left: 'abc',
  },
  { title: 'whose -wal is cut', strike: ({ path }) => cutLastCommit(`${path}-wal`), left: 'ab' },
  { title: 'whose -wal is deleted', strike: ({ path }) => remove(`${path}-wal`), left: 'abc' },
  { title: 'whose -shm is deleted', strike: ({ path }) => remove(`${path}-shm`), left: 'abc' },
]

function emptyWal(path: string): void {
  const other = new DatabaseSync(path)
  other.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  other.close()
}

function cutLastCommit(wal: string): void {
  truncate(wal, statSync(wal).size - 1)
}

/** A store with the plants a, b and c, and beside it a backup from before c. */
async function openPlanted(t: Parameters<typeof openFile>[0]): Promise<SqliteFile> {
  const file = await openFile(t)
  const other = await openStore(`file:${file.path}.other`, { logger: silent })
  await other.close()
  await add(file.store, 'a', 'b')
  backUp(file.path, `${file.path}.backup`)
  await add(file.store, 'c')
  return file
}

/** A batch that follows another one sooner is found out after its commit: then it is `unknown`. */
const quietMs = 20

for (const { title, strike, mend, left } of faults)
  test(`a file ${title}: nothing is acknowledged meanwhile, and it goes on by itself`, async (t) => {
    const file = await openPlanted(t)
    const { store, path, lines } = file
    const before = await store.log.head()
    await sleep(quietMs)
    strike(file)
    await t.rejects(add(store, 'lost'), unavailable('nothing-added'))
    if (mend) {
      await t.rejects(store.ready(), unavailable('nothing-added'))
      // The writer thread that met the fault may be ending while this one is on its way to it.
      await t.rejects(add(store, 'lost'), { name: 'StoreUnavailable' })
      mend(file)
    }
    await recovered(store)
    t.strictSame(await add(store, 'd'), ['added'])
    t.strictSame(await listNames(store), [...left, 'd'])
    const after = await store.log.head()
    t.equal(after.epochs.owner(2), before.epochs.owner(2), 'what was kept keeps its owner')
    t.not(after.epochs.owner(after.position), before.epochs.owner(3), 'what is new has another')
    const told = lines.filter(({ msg }) => /no plants are taken until a good file is there/.test(msg))
    t.equal(told.length, 1, 'the operator is told once')
    t.equal(lines.at(-1)?.msg, 'the database takes plants again')
    await store.close()
    const again = await openStore(`file:${path}`, { logger: silent })
    t.teardown(() => again.close())
    t.strictSame(await listNames(again), [...left, 'd'], 'and so it is after a restart')
  })

test('a deleted file is not made anew, and is told once', async (t) => {
  const { store, path, lines } = await openPlanted(t)
  await sleep(quietMs)
  remove(path)
  for (let n = 0; n < 3; n++) {
    await t.rejects(add(store, 'lost'), unavailable('nothing-added'))
    await t.rejects(store.ready(), unavailable('nothing-added'))
  }
  t.notOk(existsSync(path))
  t.strictSame(await listNames(store), ['a', 'b', 'c'], 'what is open can still be read')
  t.equal(lines.length, 1)
})

test('a file that goes while nobody writes is noticed', async (t) => {
  const { store, path, lines } = await openPlanted(t)
  await sleep(quietMs)
  remove(path)
  while (lines.length === 0) await turn()
  t.match(lines, [{ level: 50, msg: /plants\.db is gone: no plants are taken/ }])
  move(`${path}.backup`, path)
  while (lines.length === 1) await turn()
  t.equal(lines[1]?.msg, 'the database takes plants again')
  t.strictSame(await listNames(store), ['a', 'b'])
})

test('a -wal that no thread could save is not played into the file that follows', async (t) => {
  const threads: Worker[] = []
  const note = (message: unknown) => threads.push((message as { worker: Worker }).worker)
  subscribe('worker_threads', note)
  t.teardown(() => unsubscribe('worker_threads', note))
  const { store, path } = await openPlanted(t)
  await threads[0]?.terminate()
  move(`${path}.backup`, path)
  await recovered(store)
  t.strictSame(await add(store, 'd'), ['added'])
  t.strictSame(await listNames(store), ['a', 'b', 'd'])
  t.ok(existsSync(`${path}-wal.former`), 'it is kept')
})

test('a file that goes while a batch is at work: the outcome is unknown, not a success', async (t) => {
  const { store, path } = await openPlanted(t)
  const strike = async (): Promise<unknown> => {
    const other = new DatabaseSync(path)
    other.exec('BEGIN IMMEDIATE')
    const answer = add(store, 'd').catch(({ outcome }) => outcome)
    for (let turns = 0; turns < 2000; turns++) await turn()
    move(path, `${path}.away`)
    other.exec('ROLLBACK')
    other.close()
    const outcome = await answer
    move(`${path}.away`, path)
    await recovered(store)
    return outcome
  }
  // As a rule the first batch has looked at the files and waits for the lock when they go.
  let outcome = await strike()
  for (let tries = 0; outcome === 'nothing-added' && tries < 10; tries++) outcome = await strike()
  t.equal(outcome, 'unknown')
  t.strictSame(await listNames(store), ['a', 'b', 'c', 'd'])
})

test('a file that another program made shorter is whole, also when it has grown since', async (t) => {
  const { store, path, lines } = await openFile(t)
  const other = new DatabaseSync(path)
  t.teardown(() => other.close())
  other.exec('CREATE TABLE ballast (bytes); INSERT INTO ballast VALUES (zeroblob(1e6))')
  other.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  // Whoever looks at the file notes how long it is.
  await add(store, 'a')
  const { size } = statSync(path)
  other.exec('DROP TABLE ballast; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
  t.ok(statSync(path).size < size / 2)
  other.exec('CREATE TABLE more (bytes); INSERT INTO more VALUES (zeroblob(1e4))')
  t.strictSame(await add(store, 'b'), ['added'])
  t.strictSame(lines, [])
  other.exec('DROP TABLE more; PRAGMA wal_checkpoint(TRUNCATE)')
  await add(store, 'c')
  truncate(path, 8192)
  await t.rejects(add(store, 'lost'), unavailable('nothing-added'), 'what is cut from outside is not')
})

test('a path may be a symbolic link; one that leads elsewhere is another file', async (t) => {
  const { path: target, store: first, directory } = await openFile(t)
  await add(first, 'a')
  await first.close()
  const link = join(directory, 'link.db')
  symlinkSync(target, link)
  const { store } = await openFile(t, link)
  await add(store, 'b')
  t.strictSame(await listNames(store), ['a', 'b'])
  backUp(target, `${target}.backup`)
  await add(store, 'c')
  await sleep(quietMs)
  rmSync(link)
  symlinkSync(`${target}.backup`, link)
  await t.rejects(add(store, 'lost'), unavailable('nothing-added'))
  await recovered(store)
  t.strictSame(await listNames(store), ['a', 'b'])
  await add(store, 'd')
  await store.close()
  const { store: again } = await openFile(t, link)
  t.strictSame(await listNames(again), ['a', 'b', 'd'], 'and so it is after a restart')
})

test('a symbolic link to a file that is not there yet makes one', async (t) => {
  const directory = createDirectory(t)
  const link = join(directory, 'link.db')
  symlinkSync('target.db', link)
  const { store } = await openFile(t, link)
  await add(store, 'a')
  t.ok(existsSync(join(directory, 'target.db')))
})
