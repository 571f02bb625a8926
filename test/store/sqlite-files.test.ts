// The SQLite file disappears while the service runs: nothing is acknowledged, one log line tells the operator what to
// do, and the service resumes by itself with the same file, or after a restart with another one.
import * as fs from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { type Test, test } from 'tap'
import type { StoreUnavailable } from '../../src/store/errors.ts'
import { createDirectory } from '../support/engines.ts'
import { add, listNames, open, openFile, type SqliteFile, unavailable } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { eventually } from './logs.ts'
import { backUp, remove, truncate } from './outside.ts'

/**
 * `mend`: restores the same file; without it, the service is restarted. `left`: the remaining plants, if they are not all
 * of a, b and c.
 */
type Fault = {
  title: string
  strike: (file: SqliteFile) => void
  mend?: (file: SqliteFile) => void
  left?: string
}

/** Moves a file away, and leaves a link in its place; by default to itself, which fails with ELOOP. */
const tieUp = (path: string, target = path) => {
  fs.renameSync(path, `${path}.away`)
  fs.symlinkSync(target, path)
}
const untie = (path: string) => {
  fs.rmSync(path)
  fs.renameSync(`${path}.away`, path)
}

const faults: Fault[] = [
  {
    title: 'that is moved away and back',
    strike: ({ path }) => fs.renameSync(path, `${path}.away`),
    mend: ({ path }) => fs.renameSync(`${path}.away`, path),
  },
  {
    title: 'that is replaced by the file of another store, and put back',
    strike: ({ path }) => {
      fs.renameSync(path, `${path}.away`)
      fs.renameSync(`${path}.other`, path)
    },
    mend: ({ path }) => fs.renameSync(`${path}.away`, path),
  },
  // As to a larger disk.
  { title: 'that is moved and linked', strike: ({ path }) => tieUp(path, `${path}.away`) },
  {
    title: 'whose path becomes a link to itself, and is put back',
    strike: ({ path }) => tieUp(path),
    mend: ({ path }) => untie(path),
  },
  {
    title: 'whose -wal becomes a link to itself, and is put back',
    strike: ({ path }) => tieUp(`${path}-wal`),
    mend: ({ path }) => untie(`${path}-wal`),
  },
  {
    title: 'that is deleted, and a backup put in its place',
    strike: ({ path }) => {
      remove(path)
      fs.renameSync(`${path}.backup`, path)
    },
    left: 'ab',
  },
  { title: 'that is emptied, while its -wal has all plants', strike: ({ path }) => truncate(path, 0) },
  { title: 'whose -wal is deleted', strike: ({ path }) => remove(`${path}-wal`) },
  {
    title: 'whose -wal is deleted, and created again by a reader',
    strike: ({ path }) => {
      remove(`${path}-wal`)
      fs.writeFileSync(`${path}-wal`, '')
    },
  },
  { title: 'whose -shm is deleted', strike: ({ path }) => remove(`${path}-shm`) },
]

/** A store with the plants a, b and c, a backup made before c, and another store. */
async function openPlanted(t: Test): Promise<SqliteFile> {
  const file = await openFile(t)
  await (await openFile(t, `${file.path}.other`)).store.close()
  await add(file.store, 'a', 'b')
  backUp(file.path, `${file.path}.backup`)
  await add(file.store, 'c')
  return file
}

for (const { title, strike, mend, left = 'abc' } of faults)
  test(`acknowledges nothing with a file ${title}, and still lists the plants`, async (t) => {
    const file = await openPlanted(t)
    const { store, path, lines } = file
    const before = await store.log.head()
    strike(file)
    for (let n = 0; n < 3; n++) {
      await t.rejects(add(store, 'lost'), unavailable('nothing-added'))
      await t.rejects(store.log.append([]), unavailable('nothing-added'))
    }
    t.strictSame(await listNames(store), ['a', 'b', 'c'], 'from the open files')
    await until(() => lines.length > 0)
    const reason = /plants\.db.*: put the original file back, or restart/
    t.match(lines, [{ level: 40, msg: 'plants cannot be added to the database', reason }])
    t.equal(lines.length, 1, 'the operator sees one line')
    mend?.(file)
    if (mend) {
      await eventually(() => store.log.append([]))
      t.strictSame(await add(store, 'd'), ['added'])
      await until(() => lines.length > 1)
      // The files are also checked every second.
      t.match(lines[1], { level: 30, msg: 'plants can be added to the database again' })
      t.ok(Number(lines[1]?.failures) >= 6)
      t.equal((await store.log.head([3])).markOf(3), before.mark)
    }
    await store.close()
    const { store: again } = await openFile(t, path)
    t.strictSame(await listNames(again), [...left, ...(mend ? 'd' : '')], 'after a restart')
    await add(again, 'e')
  })

/** Finds an open file in `/proc/self/fd` by its path. */
function findOpen(path: string, ino?: number): string | undefined {
  const files = fs.readdirSync('/proc/self/fd').map((fd) => join('/proc/self/fd', fd))
  return files.find((name) => {
    const isHere = fs.existsSync(name) && [path, `${path} (deleted)`].includes(fs.readlinkSync(name))
    return isHere && (ino === undefined || fs.statSync(name).ino === ino)
  })
}

const onLinux = { skip: fs.existsSync('/proc/self/fd') ? false : 'only Linux lists open files' }

test('keeps a deleted file open, whatever replaces it', onLinux, async (t) => {
  const { store, path } = await openPlanted(t)
  const { ino } = fs.statSync(path)
  remove(path)
  for (const put of [() => {}, () => truncate(path, 0), () => fs.renameSync(`${path}.other`, path)]) {
    put()
    for (let n = 0; n < 3; n++) {
      await t.rejects(add(store, 'lost'), unavailable('nothing-added'))
      await t.rejects(store.log.append([]), unavailable('nothing-added'))
    }
    t.ok(findOpen(path, ino))
    t.strictSame(await listNames(store), ['a', 'b', 'c'])
  }
  t.equal(fs.existsSync(`${path}-wal.former`), false, 'renames nothing')
})

test('copies of a deleted file and its -wal, deleted or not, contain all plants', onLinux, async (t) => {
  for (const deleted of [[''], ['', '-wal']]) {
    const { store, path } = await openPlanted(t)
    for (const ending of deleted) remove(`${path}${ending}`)
    const copy = join(createDirectory(t), 'plants.db')
    for (const ending of ['', '-wal'])
      fs.copyFileSync(findOpen(`${path}${ending}`) as string, `${copy}${ending}`)
    // While it is there, the end is an error.
    fs.rmSync(`${path}-wal`, { force: true })
    await store.close()
    const { store: rescued } = await openFile(t, copy)
    t.strictSame(await listNames(rescued), ['a', 'b', 'c'])
  }
})

test('is not created beside the -wal or the -shm of a file that was moved away', async (t) => {
  const { path } = await openPlanted(t)
  const [orphan, link] = [join(createDirectory(t), 'plants.db'), join(createDirectory(t), 'link.db')]
  fs.symlinkSync(orphan, link)
  fs.copyFileSync(`${path}-wal`, `${orphan}-wal`)
  const message = /plants\.db-(wal|shm|journal) belongs to a missing database: move the database back/
  for (const before of [undefined, '']) {
    if (before !== undefined) fs.writeFileSync(orphan, before)
    for (const name of [link, orphan]) await t.rejects(openFile(t, name), { message })
    t.ok(fs.readFileSync(`${orphan}-wal`).equals(fs.readFileSync(`${path}-wal`)))
  }
  for (const ending of ['', '-wal']) fs.renameSync(path + ending, `${path}.moved${ending}`)
  await t.rejects(openFile(t, path), { message })
  fs.renameSync(`${path}-shm`, `${path}-journal`)
  await t.rejects(openFile(t, path), { message })
  t.notOk(fs.existsSync(path))
})

test('is not opened, nor changed, if it is a backup beside the log of another database', async (t) => {
  const { path } = await openPlanted(t)
  const backup = `${path}.backup`
  const bytes = fs.readFileSync(backup)
  fs.copyFileSync(`${path}-wal`, `${backup}-wal`)
  const message = /-wal is not of this database: stop all processes/
  for (const mode of ['read', 'write'] as const)
    await t.rejects(open(t, `file:${backup}`, { mode }), { message })
  t.ok(fs.readFileSync(backup).equals(bytes))
})

test('is not opened through a link while a log with plants is next to the link', async (t) => {
  const { path } = await openPlanted(t)
  const file = join(createDirectory(t), 'file.db')
  const link = join(createDirectory(t), 'plants.db')
  // As a process leaves them that was killed after its file had been moved.
  fs.copyFileSync(path, file)
  fs.copyFileSync(`${path}-wal`, `${link}-wal`)
  fs.symlinkSync(file, link)
  await t.rejects(openFile(t, link), { message: /would ignore \S+-wal, because \S+ is a symbolic link: / })
  fs.renameSync(`${link}-wal`, `${file}-wal`)
  const { store } = await openFile(t, link)
  t.strictSame(await listNames(store), ['a', 'b', 'c'])
})

test('logs a file that cannot be checked, even if nothing is added', async (t) => {
  const { store, path, lines } = await openPlanted(t)
  tieUp(path)
  await until(() => lines.length > 0)
  t.match(lines, [{ reason: /plants\.db cannot be accessed \(ELOOP\)/ }])
  untie(path)
  t.strictSame(await add(store, 'd'), ['added'])
  t.equal(lines[1]?.msg, 'plants can be added to the database again')
})

/** A batch that takes long enough for the file to disappear during it. */
const manyPlants = Array.from({ length: 50_000 }, (_, n) => `${n}`)

test('reports an unknown outcome if the file disappears during a batch', async (t) => {
  const { store, path } = await openPlanted(t)
  const other = new DatabaseSync(path)
  t.teardown(() => other.close())
  other.exec('PRAGMA busy_timeout = 0')
  // The move must happen between the two checks of the file by a batch; otherwise the test retries.
  const tries = 10
  let outcome: unknown
  let batches = 0
  for (let n = 0; n < tries && outcome !== 'unknown'; n++) {
    const answer = add(store, ...manyPlants).then(
      () => 'added',
      (error: StoreUnavailable) => error.outcome,
    )
    while (isFree(other)) await turn()
    for (let turns = 0; turns < 2000; turns++) await turn()
    fs.renameSync(path, `${path}.away`)
    outcome = await answer
    if (outcome !== 'nothing-added') batches++
    fs.renameSync(`${path}.away`, path)
    await eventually(() => store.log.append([]))
  }
  t.equal(outcome, 'unknown')
  t.equal((await listNames(store)).length, 3 + batches * manyPlants.length)
})

function isFree(db: DatabaseSync): boolean {
  try {
    db.exec('BEGIN IMMEDIATE; ROLLBACK')
    return true
  } catch {
    return false
  }
}

test('adds nothing to a file that another program shortened, until a restart', async (t) => {
  const { store, path } = await openFile(t)
  const other = new DatabaseSync(path)
  t.teardown(() => other.close())
  other.exec('CREATE TABLE ballast (bytes); INSERT INTO ballast VALUES (zeroblob(1e6))')
  other.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  await add(store, 'a')
  await store.log.append([])
  other.exec('DROP TABLE ballast; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
  await t.rejects(add(store, 'lost'), { ...unavailable('nothing-added'), message: /shrank from \d+ to \d+/ })
  t.strictSame(await listNames(store), ['a'])
  await store.close()
  const { store: again } = await openFile(t, path)
  t.strictSame(await add(again, 'b'), ['added'])
  t.strictSame(await listNames(again), ['a', 'b'])
})

test('follows a symbolic link, and detects when it leads to another file', async (t) => {
  const { path: target, store: first, directory } = await openFile(t)
  await add(first, 'a')
  await first.close()
  const link = join(directory, 'link.db')
  fs.symlinkSync(target, link)
  const { store } = await openFile(t, link)
  await add(store, 'b')
  t.strictSame(await listNames(store), ['a', 'b'])
  backUp(target, `${target}.backup`)
  await add(store, 'c')
  fs.rmSync(link)
  fs.symlinkSync(`${target}.backup`, link)
  await t.rejects(add(store, 'lost'), unavailable('nothing-added'))
  t.strictSame(await listNames(store), ['a', 'b', 'c'])
  await store.close()
  const { store: again } = await openFile(t, link)
  t.strictSame(await listNames(again), ['a', 'b'], 'a restart opens the new target')
  const { store: former } = await openFile(t, target)
  t.strictSame(await listNames(former), ['a', 'b', 'c'], 'the former target has lost nothing')
})
