// What no test in this process could survive: a -shm that is cut, a file that may not grow. And what is synced before a
// start is done.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Test, test } from 'tap'
import { createDirectory } from '../support/engines.ts'
import { add, listNames, openFile } from '../support/stores.ts'
import { skipWithout } from '../support/tools.ts'
import { type Appender, addMany, startAppender } from './appenders.ts'
import { truncate } from './outside.ts'

/** Another program with a transaction, beside the service: it commits when it is told to. */
const neighbour = `
  const db = new (require('node:sqlite').DatabaseSync)(process.argv[1])
  db.exec('PRAGMA busy_timeout = 2000; BEGIN IMMEDIATE')
  console.log('begun')
  process.stdin.once('data', () => {
    db.exec("INSERT INTO plants SELECT max(position) + 1, NULL, '{}', 'abcdefghijk', 0 FROM plants; COMMIT")
  })`

test('a -shm that is cut beside a transaction of another program ends them, and loses nothing', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  const appender = await startAppender(t, path)
  const added: string[] = []
  const addNext = async () => {
    const name = `${added.length}`
    const answer = await appender.add(name)
    if (/^\d+$/.test(answer)) added.push(name)
  }
  while (added.length < 10) await addNext()
  const emptied = new DatabaseSync(path)
  emptied.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  emptied.close()
  // These are in the write-ahead log alone, where the -shm says how to find them.
  while (added.length < 20) await addNext()
  const other = spawn(process.execPath, ['-e', neighbour, path], { stdio: ['pipe', 'pipe', 'ignore'] })
  t.teardown(() => other.kill('SIGKILL'))
  other.stdin.on('error', () => {})
  const otherEnded = once(other, 'exit')
  await once(other.stdout, 'data')
  truncate(`${path}-shm`, 0)
  await addNext()
  other.stdin.end('commit')
  await otherEnded
  for (let n = 0; n < 5; n++) await addNext()
  await appender.end()
  const { store } = await openFile(t, path)
  const names = await listNames(store)
  t.strictSame(
    added.filter((name) => !names.includes(name)),
    [],
    'what was acknowledged is there',
  )
  t.match(await store.sql.select('PRAGMA integrity_check'), [{ integrity_check: 'ok' }])
  await add(store, 'more')
})

for (const bytes of [0, 8192])
  test(`a -wal that is cut to ${bytes} bytes ends the process before another plant is acknowledged`, async (t) => {
    const path = join(createDirectory(t), 'plants.db')
    const appender = await startAppender(t, path)
    await addMany(appender, 10)
    truncate(`${path}-wal`, bytes)
    await appender.add('lost')
    t.equal(await appender.end(), 1)
    t.match(appender.errors(), /the write-ahead log was cut.*restart/)
    t.match(appender.errors(), `another program has cut ${path}-wal`)
    const { store } = await openFile(t, path)
    t.notOk((await listNames(store)).includes('lost'))
  })

test('a -wal that another program empties in a checkpoint is no fault', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  const appender = await startAppender(t, path)
  await addMany(appender, 3)
  const other = new DatabaseSync(path)
  other.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  t.equal(statSync(`${path}-wal`).size, 0)
  t.equal(await appender.add('a'), '4')
  other.close()
  t.equal(await appender.end(), 0)
})

const noLocks = process.platform === 'linux' ? false : 'only Linux shows locks as files'

test('a store that is closed takes no locks from another one on the same file', {
  skip: noLocks,
}, async (t) => {
  const one = await openFile(t)
  const two = await openFile(t, one.path)
  // A process that finds no lock in the -shm cuts it, and with that the memory of this one; one that finds none on the
  // database deletes the -wal when it closes.
  const inodes = ['', '-shm'].map((ending) => statSync(one.path + ending).ino)
  const isLocked = () => {
    const locks = readFileSync('/proc/locks', 'utf8')
    return inodes.every((inode) => new RegExp(` ${process.pid} [^ ]+:${inode} `).test(locks))
  }
  t.ok(isLocked())
  await two.store.close()
  t.ok(isLocked())
  await one.store.close()
  t.notOk(isLocked())
})

test('a file that may not grow: the outcome is unknown, and what was acknowledged is there', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  // In units of 512 bytes (POSIX): the first write-ahead log ends there, a new one has room again. What tap loads into
  // each process takes the signal for its end.
  const wrap = ['sh', '-c', 'trap "" XFSZ; ulimit -f 400; unset NODE_OPTIONS; exec "$@"', 'sh']
  const appender = await startAppender(t, path, { wrap })
  const { added, answers } = await addMany(appender, 200)
  t.ok(answers.includes('unknown'), `${answers}`)
  t.ok(added.includes('199'), 'it goes on with a new write-ahead log')
  t.equal(await appender.end(), 0)
  const { store } = await openFile(t, path)
  const names = await listNames(store)
  t.strictSame(
    added.filter((name) => !names.includes(name)),
    [],
  )
  t.equal(new Set(names).size, names.length)
})

const skip = skipWithout('strace')

/** Starts an appender whose syncs, writes and answers go into a file. */
async function startTraced(t: Test, path: string, trace: string): Promise<Appender> {
  const calls = 'trace=fsync,fdatasync,write,pwrite64'
  return startAppender(t, path, { wrap: ['strace', '-f', '-y', '-e', calls, '-o', trace] })
}

test('a log that a killed process left is synced, written back, and the file synced, before a start is done', {
  skip,
}, async (t) => {
  const directory = createDirectory(t)
  const [path, trace] = [join(directory, 'plants.db'), join(directory, 'trace')]
  const killed = await startAppender(t, path)
  t.equal(await killed.add('a'), '1')
  process.kill(killed.pid, 'SIGKILL')
  await killed.end()
  t.equal(await (await startTraced(t, path, trace)).end(), 0)
  const calls = readFileSync(trace, 'utf8').split('\n')
  const order = [
    new RegExp(`fsync\\(\\d+<${path}-wal>`),
    new RegExp(`pwrite64\\(\\d+<${path}>`),
    new RegExp(`f(data)?sync\\(\\d+<${path}>`),
    /write\(1<[^>]*>, "open\\n"/,
  ].map((call) => calls.findIndex((line) => call.test(line)))
  t.notOk(order.includes(-1), `${order}`)
  t.strictSame(
    order,
    order.toSorted((a, b) => a - b),
  )
})

test('each directory that is made is synced into the one above it', { skip }, async (t) => {
  const directory = createDirectory(t)
  const trace = join(directory, 'trace')
  const path = join(directory, 'data', 'of', 'plants.db')
  t.equal(await (await startTraced(t, path, trace)).end(), 0)
  const calls = readFileSync(trace, 'utf8')
  for (const above of [directory, join(directory, 'data'), join(directory, 'data', 'of')])
    t.match(calls, new RegExp(`f(data)?sync\\(\\d+<${above}>\\) += 0`))
})

test('the file and its directory are synced at each start', { skip }, async (t) => {
  const directory = createDirectory(t)
  const [path, trace] = [join(directory, 'plants.db'), join(directory, 'trace')]
  const { store } = await openFile(t, path)
  await store.close()
  // SQLite itself syncs them when it writes: here nothing is written.
  t.equal(await (await startTraced(t, path, trace)).end(), 0)
  const calls = readFileSync(trace, 'utf8')
  for (const synced of [path, directory]) t.match(calls, new RegExp(`f(data)?sync\\(\\d+<${synced}>\\) += 0`))
})
