// SQLite files in a separate process: a truncated -shm, a limit on the size of files, and syncs.
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Test, test } from 'tap'
import { cli } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { spawnProgram } from '../support/processes.ts'
import { request, startService, token } from '../support/service.ts'
import { add, listNames, openFile, type Store } from '../support/stores.ts'
import { skipWithout } from '../support/tools.ts'
import { type Appender, addMany, startAppender } from './appenders.ts'
import { truncate } from './outside.ts'

/** Another program with a transaction: it commits when it receives a line. */
const neighbour = `
  const db = new (require('node:sqlite').DatabaseSync)(process.argv[1])
  db.exec('PRAGMA busy_timeout = 2000; BEGIN IMMEDIATE')
  console.log('begun')
  process.stdin.once('data', () => {
    db.exec("INSERT INTO plants SELECT max(position) + 1, NULL, '{}', 'abcdefghijk', 0 FROM plants; COMMIT")
  })`

/** Runs a statement as another program would. */
function runSql(path: string, statement: string): void {
  const db = new DatabaseSync(path)
  db.exec(statement)
  db.close()
}

/** Asserts that a store still contains acknowledged plants. Resolves to the names of all its plants. */
async function assertKept(t: Test, store: Store, acknowledged: string[]): Promise<string[]> {
  const names = await listNames(store)
  const lost = acknowledged.filter((name) => !names.includes(name))
  t.strictSame(lost, [], 'acknowledged plants are kept')
  return names
}

test('a -shm that is truncated during a transaction of another program loses no plant', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  const appender = await startAppender(t, path)
  const added: string[] = []
  const addNext = async () => {
    const name = `${added.length}`
    const answer = await appender.add(name)
    if (/^\d+$/.test(answer)) added.push(name)
  }
  while (added.length < 10) await addNext()
  runSql(path, 'PRAGMA wal_checkpoint(TRUNCATE)')
  // These plants are only in the write-ahead log, which is indexed by the -shm.
  while (added.length < 20) await addNext()
  const other = spawnProgram(t, process.execPath, ['-e', neighbour, path], { input: null })
  await other.prints(/begun/)
  truncate(`${path}-shm`, 0)
  await addNext()
  other.child.stdin.end('commit')
  await other.ended
  for (let n = 0; n < 5; n++) await addNext()
  await appender.end()
  const { store } = await openFile(t, path)
  await assertKept(t, store, added)
  t.match(await store.sql.select('PRAGMA integrity_check'), [{ integrity_check: 'ok' }])
  await add(store, 'more')
})

/** A store in this process, which is used like an appender. */
async function openHere(t: Test, path: string): Promise<Pick<Appender, 'add' | 'end'>> {
  const { store } = await openFile(t, path)
  return {
    add: (name) => add(store, name).then(async () => `${(await store.log.head()).position}`),
    end: () => store.close().then(() => 0),
  }
}

function linkTo(link: string, ending: string): void {
  fs.rmSync(link, { force: true })
  fs.mkdirSync(`${link}.${ending}`, { recursive: true })
  fs.symlinkSync(`${link}.${ending}`, link, 'junction')
}

for (const bytes of [0, 8192])
  test(`a -wal that is truncated to ${bytes} bytes ends the process before another plant is acknowledged`, async (t) => {
    const link = join(createDirectory(t), 'link')
    const path = join(link, 'plants.db')
    linkTo(link, '1')
    const appender = await startAppender(t, path)
    await addMany(appender, 10)
    // The same files, by another name.
    fs.renameSync(`${link}.1`, `${link}.2`)
    linkTo(link, '2')
    truncate(`${path}-wal`, bytes)
    await appender.add('lost')
    t.equal(await appender.end(), 1)
    t.equal(appender.errors().match(/the write-ahead log was truncated.*restart/g)?.length, 1)
    t.match(appender.errors(), `another program has truncated ${path}-wal`)
    const { store } = await openFile(t, path)
    t.notOk((await listNames(store)).includes('lost'))
  })

/** Each resolves to the path of the database from then on. */
const moves = {
  'whose -shm was deleted': (path: string) => {
    fs.rmSync(`${path}-shm`)
    return path
  },
  'whose -wal was deleted': (path: string) => {
    runSql(path, 'PRAGMA wal_checkpoint(PASSIVE)')
    fs.rmSync(`${path}-wal`)
    return path
  },
  'whose files were moved without the -shm': (path: string) => {
    for (const ending of ['', '-wal']) fs.renameSync(path + ending, `${path}.moved${ending}`)
    return `${path}.moved`
  },
}
for (const [title, move] of Object.entries(moves))
  for (const first of ['new', 'old'] as const)
    test(`a process ${title} leaves the log to the next one (${first} ends first)`, async (t) => {
      const path = join(createDirectory(t), 'plants.db')
      const old = await startAppender(t, path)
      await addMany(old, 20)
      const now = move(path)
      t.match(await addMany(old, 1), { answers: ['nothing-added'] })
      const processes = { old, new: await openHere(t, now) }
      t.equal((await addMany(processes.new, 150)).added.length, 150)
      t.equal(await processes[first].end(), 0)
      if (first === 'old') t.equal(await processes.new.add('last'), '171')
      t.equal(await processes[first === 'new' ? 'old' : 'new'].end(), 0)
      t.equal((await listNames((await openFile(t, now)).store)).length, first === 'old' ? 171 : 170)
    })

test('a process whose file was replaced leaves the log to the new file', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  const [one, two] = [await startAppender(t, path), await startAppender(t, path)]
  await addMany(one, 20)
  runSql(path, `VACUUM INTO '${path}.new'`)
  fs.renameSync(path, `${path}.old`)
  fs.renameSync(`${path}.new`, path)
  for (const old of [one, two]) t.match(await addMany(old, 1), { answers: ['nothing-added'] })
  t.equal(await one.end(), 0)
  const next = await openHere(t, path)
  t.equal((await addMany(next, 30)).added.length, 30)
  // A later change of the old file must not make it look newer than the log.
  await new Promise((resolve) => setTimeout(resolve, 1000))
  fs.chmodSync(`${path}.old`, 0o400)
  t.equal(await two.end(), 0)
  t.equal(await next.add('last'), '51')
  t.equal(await next.end(), 0)
  t.equal((await listNames((await openFile(t, path)).store)).length, 51)
})

test('a process whose file was replaced by a store of the same size and almost the same time empties the log', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  const other = join(createDirectory(t), 'other.db')
  for (const one of [path, other]) {
    const first = await openHere(t, one)
    t.equal((await addMany(first, 20)).added.length, 20)
    t.equal(await first.end(), 0)
  }
  const old = await startAppender(t, path)
  await addMany(old, 10)
  const { size, mtimeMs } = fs.statSync(path)
  t.equal(fs.statSync(other).size, size)
  fs.utimesSync(other, 0, (mtimeMs + 700) / 1000)
  fs.renameSync(other, path)
  t.match(await addMany(old, 1), { answers: ['nothing-added'] })
  t.equal(await old.end(), 0)
  t.equal((await listNames((await openFile(t, path)).store)).length, 20)
})

for (const [title, strike] of Object.entries({
  'the file is moved': (path: string) => fs.renameSync(path, `${path}.moved`),
  'the file is replaced': (path: string) => {
    fs.copyFileSync(path, `${path}.copy`)
    fs.renameSync(path, `${path}.moved`)
    fs.renameSync(`${path}.copy`, path)
  },
  'the -wal is deleted': (path: string) => fs.rmSync(`${path}-wal`),
  'the file is moved, and looked at': (path: string) => {
    fs.renameSync(path, `${path}.moved`)
    runSql(`${path}.moved`, 'SELECT * FROM plants')
  },
  'the file is moved, and another log is at its path': (path: string) => {
    fs.renameSync(path, `${path}.moved`)
    fs.rmSync(`${path}-wal`)
    fs.writeFileSync(`${path}-wal`, 'another')
  },
}))
  test(`a process that ends writes back the plants of another process: ${title}`, async (t) => {
    const path = join(createDirectory(t), 'plants.db')
    const [service, command] = [await startAppender(t, path), await openHere(t, path)]
    await addMany(service, 20)
    await addMany(command, 10)
    t.equal(await command.end(), 0)
    strike(path)
    t.equal(await service.end(), 0)
    const { store } = await openFile(t, fs.existsSync(`${path}.moved`) ? `${path}.moved` : path)
    t.equal((await listNames(store)).length, 30)
  })

test('a process ends with an error if a reader prevents it from writing back a deleted log', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  const appender = await startAppender(t, path)
  await addMany(appender, 20)
  const reader = new DatabaseSync(path, { readOnly: true })
  t.teardown(() => reader.close())
  reader.exec('BEGIN; SELECT * FROM plants')
  await addMany(appender, 20)
  fs.rmSync(`${path}-wal`)
  t.equal(await appender.end(), 1)
  t.match(appender.errors(), /was not emptied/)
})

test('a process whose file was moved to another disk leaves the log, and ends with an error', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  const appender = await startAppender(t, path)
  await addMany(appender, 20)
  const copy = `${path}.copy`
  execFileSync('cp', ['-p', path, copy])
  // Some disks keep times in seconds.
  fs.utimesSync(copy, 0, Math.floor(fs.statSync(copy).mtimeMs / 1000))
  fs.rmSync(path)
  fs.symlinkSync(copy, path)
  t.equal(await appender.end(), 1)
  t.match(appender.errors(), /was not emptied/)
  fs.renameSync(`${path}-wal`, `${copy}-wal`)
  t.equal((await listNames((await openFile(t, path)).store)).length, 20)
})

test('accepts a -wal that another program empties in a checkpoint', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  const appender = await startAppender(t, path)
  await addMany(appender, 3)
  const other = new DatabaseSync(path)
  other.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  t.equal(fs.statSync(`${path}-wal`).size, 0)
  t.equal(await appender.add('a'), '4')
  other.close()
  t.equal(await appender.end(), 0)
})

const noLocks = process.platform === 'linux' ? false : 'only Linux shows locks as files'

test('closing a store keeps the locks of another store on the same file', { skip: noLocks }, async (t) => {
  const one = await openFile(t)
  const two = await openFile(t, one.path)
  // A process that finds no lock on the -shm truncates it, although it is mapped here; one that finds none on the
  // database deletes the -wal when it closes.
  const inodes = ['', '-shm'].map((ending) => fs.statSync(one.path + ending).ino)
  const isLocked = () => {
    const locks = fs.readFileSync('/proc/locks', 'utf8')
    return inodes.every((inode) => new RegExp(` ${process.pid} [^ ]+:${inode} `).test(locks))
  }
  t.ok(isLocked())
  await two.store.close()
  t.ok(isLocked())
  await one.store.close()
  t.notOk(isLocked())
})

// In units of 512 bytes (POSIX): the first write-ahead log reaches the limit, a new one has room again. The signal would
// end the instruments of tap.
const limited = ['sh', '-c', 'trap "" XFSZ; ulimit -f 400; unset NODE_OPTIONS; exec "$@"', 'sh']

test('a process whose file was replaced after an I/O error empties the log', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  const appender = await startAppender(t, path, { wrap: limited })
  await addMany(appender, 10)
  runSql(path, `VACUUM INTO '${path}.new'`)
  while ((await appender.add('more')) !== 'unknown');
  fs.renameSync(`${path}.new`, path)
  t.equal(await appender.end(), 0)
  t.equal((await listNames((await openFile(t, path)).store)).length, 10)
})

test('reports an unknown outcome when the file cannot grow, and keeps acknowledged plants', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  const appender = await startAppender(t, path, { wrap: limited })
  const { added, answers } = await addMany(appender, 200)
  t.ok(answers.includes('unknown'), `${answers}`)
  t.ok(added.includes('199'), 'continues with a new write-ahead log')
  t.equal(await appender.end(), 0)
  const { store } = await openFile(t, path)
  const names = await assertKept(t, store, added)
  t.equal(new Set(names).size, names.length)
})

const skip = skipWithout('strace')

/** Starts an appender, and records its syncs, writes and responses in a file. */
async function startTraced(t: Test, path: string, trace: string): Promise<Appender> {
  const calls = 'trace=fsync,fdatasync,write,pwrite64'
  return startAppender(t, path, { wrap: ['strace', '-f', '-y', '-e', calls, '-o', trace] })
}

test('a start syncs the log of a killed process, writes it back, and syncs the file', { skip }, async (t) => {
  const directory = createDirectory(t)
  const [path, trace] = [join(directory, 'plants.db'), join(directory, 'trace')]
  const killed = await startAppender(t, path)
  t.equal(await killed.add('a'), '1')
  process.kill(killed.pid, 'SIGKILL')
  await killed.end()
  t.equal(await (await startTraced(t, path, trace)).end(), 0)
  const calls = fs.readFileSync(trace, 'utf8').split('\n')
  const order = [
    new RegExp(`fsync\\(\\d+<${path}-wal>`),
    new RegExp(`pwrite64\\(\\d+<${path}>`),
    new RegExp(`f(data)?sync\\(\\d+<${path}>`),
    /write\(1<[^>]*>, "open\\n"/,
  ].map((call) => calls.findIndex((line) => call.test(line)))
  t.notOk(order.includes(-1), `${order}`)
  const sorted = order.toSorted((a, b) => a - b)
  t.strictSame(order, sorted)
})

test('each start syncs the file, its directory, and each directory that it creates', { skip }, async (t) => {
  const directory = createDirectory(t)
  const [trace, data] = [join(directory, 'trace'), join(directory, 'data')]
  const path = join(data, 'of', 'plants.db')
  // SQLite itself syncs the file when it writes: the second start writes nothing.
  for (const synced of [
    [directory, data, dirname(path)],
    [path, dirname(path)],
  ]) {
    t.equal(await (await startTraced(t, path, trace)).end(), 0)
    const calls = fs.readFileSync(trace, 'utf8')
    t.notMatch(calls, '-journal', 'a kill would leave it')
    for (const name of synced) t.match(calls, new RegExp(`f(data)?sync\\(\\d+<${name}>\\) += 0`))
  }
})

const plants = 10

test('the -wal is synced before the response to a POST', { skip }, async (t) => {
  const directory = createDirectory(t)
  const trace = join(directory, 'trace')
  const calls = 'trace=fsync,fdatasync,write,writev,sendto,sendmsg,pwrite64'
  const args = ['-f', '-y', '-e', calls, '-o', trace, process.execPath, cli, 'serve']
  const DATABASE_URL = `file:${join(directory, 'plants.db')}`
  const env = { PATH: process.env.PATH, PORT: '0', ACCESS_TOKENS: token, DATABASE_URL }
  const { child, ended, listening } = spawnProgram(t, 'strace', args, { env })
  const url = await listening()
  for (let n = 0; n < plants; n++)
    t.equal((await request(`${url}/plants`, { body: { name: `${n}`, tag: '' } })).status, 200)
  // strace forwards no signals, so they go to its child, the service.
  const pid = fs.readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim()
  process.kill(Number(pid), 'SIGTERM')
  await ended
  // One letter per call: a write into the -wal, the return of a sync of it, a response.
  const order = fs.readFileSync(trace, 'utf8').split('\n').map(nameCall).join('').replace(/W+/g, 'W')
  t.match(order, new RegExp(`(WSA){${plants}}`))
  t.equal(order.match(/A/g)?.length, plants)
})

test('a command that reads beside a service syncs the -wal before it reads', { skip }, async (t) => {
  const directory = createDirectory(t)
  const [path, trace] = [join(directory, 'plants.db'), join(directory, 'trace')]
  const { url } = await startService(t, { DATABASE_URL: `file:${path}` })
  t.equal((await request(`${url}/plants`, { body: { name: 'a', tag: '' } })).status, 200)
  const args = ['-f', '-y', '-e', 'trace=fsync', '-o', trace, process.execPath, cli, 'export', '-']
  const env = { PATH: process.env.PATH, DATABASE_URL: `file:${path}` }
  t.match(await spawnProgram(t, 'strace', args, { env }).ended, { code: 0 })
  t.match(fs.readFileSync(trace, 'utf8'), `<${path}-wal>`)
})

function nameCall(line: string): string {
  if (/pwrite64\(\d+<[^>]*-wal>/.test(line)) return 'W'
  if (/f(data)?sync\(\d+<[^>]*-wal>\) += 0/.test(line) || /f(data)?sync resumed>\) += 0/.test(line))
    return 'S'
  return /(write|writev|sendto|sendmsg)\(\d+<[^>]*(socket|TCP)[^>]*>.*HTTP\/1\.1 200/.test(line) ? 'A' : ''
}
