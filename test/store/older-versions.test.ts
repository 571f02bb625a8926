// Stores of version 1.0.0: which commands bring them up to date, and that none does so beneath a service of that version.
import { once } from 'node:events'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import pg from 'pg'
import { type Test, test } from 'tap'
import { migrations } from '../../src/store/format/migrations.ts'
import { runCommand } from '../support/commands.ts'
import { createDirectory, type Engine, engines } from '../support/engines.ts'
import { type Kept, keptFile, makeKept, readVersionOf } from '../support/kept.ts'
import type { OpenerData } from '../support/opener.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

/** Commands that read. `{url}`: the store of 1.0.0; `{new}`: a database that is not there. */
const readers: [args: string[], sqliteOnly?: boolean][] = [
  [['token', 'list']],
  [['status']],
  [['export', '-']],
  [['verify']],
  [['copy', '--from', '{url}', '--to', '{new}']],
  [['backup', '{file}'], true],
]
const writers = [
  ['token', 'create', '--name', 'new'],
  ['token', 'revoke', 'POhKNv1F'],
  ['token', 'rotate', 'POhKNv1F'],
]
const older = /^plant-store: [^\n]*schema version 1, [^\n]+ start its service on the database first[^\n]*\n$/

/** Has the store open as 1.0.0 has; resolves to what ends it. */
async function openAsOlder(t: Test, engine: Engine, { url }: Kept): Promise<() => unknown> {
  if (engine.name === 'SQLite') {
    const db = new DatabaseSync(decodeURIComponent(url.slice('file:'.length)), { readOnly: true })
    db.prepare('SELECT coalesce(max(position), 0) FROM plants').get()
    t.teardown(() => db.isOpen && db.close())
    return () => db.close()
  }
  const client = new pg.Client({ connectionString: url, application_name: '' })
  await client.connect()
  await client.query('SELECT position FROM head')
  let isOpen = true
  const end = async () => {
    if (isOpen) await client.end()
    isOpen = false
  }
  t.teardown(end)
  return end
}

for (const engine of engines) {
  const environment = async (t: Test, kept: Kept) => {
    const other = await engine.createDatabase(t)
    const fill = (args: string[]) =>
      args.map((arg) =>
        arg
          .replace('{url}', kept.url)
          .replace('{new}', other)
          .replace('{file}', `${other.slice(5)}.copy`),
      )
    return { fill, env: { DATABASE_URL: kept.url } }
  }

  test(`${engine.name}: commands that read an older store leave its schema as it is`, async (t) => {
    const kept = await makeKept(t, engine.name)
    await openAsOlder(t, engine, kept)
    for (const [args, sqliteOnly] of readers) {
      if (sqliteOnly && engine.name !== 'SQLite') continue
      const { fill, env } = await environment(t, kept)
      t.match(await runCommand(fill(args), env), { code: 0 }, args.join(' '))
      t.equal(await kept.version(), 1, args.join(' '))
    }
  })

  test(`${engine.name}: tokens of an older store are not changed, and one line says what to do`, async (t) => {
    const kept = await makeKept(t, engine.name)
    for (const args of writers) {
      const { code, stdout, stderr } = await runCommand(args, { DATABASE_URL: kept.url })
      t.same([code, stdout], [1, ''], args.join(' '))
      t.match(stderr, older)
    }
    t.equal(await kept.version(), 1)
  })

  test(`${engine.name}: a store that an older service has open is not brought up to date`, async (t) => {
    const kept = await makeKept(t, engine.name)
    const end = await openAsOlder(t, engine, kept)
    const env = { DATABASE_URL: kept.url, PORT: '0', ACCESS_TOKENS: 'a-token-for-tests' }
    for (const args of [['serve'], ['verify', '--repair']]) {
      const { code, stderr } = await runCommand(args, env)
      t.equal(code, 1, args.join(' '))
      t.match(
        stderr,
        /(^|\n)plant-store: [^\n]*the database is of an older version, and [^\n]+: stop each plant-store [^\n]+\n$/,
      )
    }
    t.equal(await kept.version(), 1)
    await end()
    const [one, two] = await Promise.all([startService(t, env), startService(t, env)])
    t.ok((await kept.version()) > 1, 'of two that start at once each finds it up to date')
    t.ok(one.url !== two.url)
  })

  test(`${engine.name}: commands other than serve, import, restore and copy --to make no database`, async (t) => {
    const url = await engine.createDatabase(t)
    for (const args of [
      ...writers,
      ['token', 'list'],
      ['status'],
      ['export', '-'],
      ['verify'],
      ['verify', '--repair'],
    ]) {
      const { code, stdout, stderr } = await runCommand(args, { DATABASE_URL: url })
      t.same([code, stdout], [1, ''], args.join(' '))
      t.match(stderr, /^plant-store: [^\n]*(no file|no plant store)[^\n]*\n$/, args.join(' '))
    }
  })
}

/** Has files opened by a thread, and resolves to what became of each. */
async function openInThread(workerData: OpenerData): Promise<string[]> {
  const outcomes: string[] = []
  const worker = new Worker(new URL('../support/opener.ts', import.meta.url), { workerData })
  worker.on('message', (outcome: string) => outcomes.push(outcome))
  await once(worker, 'exit')
  return outcomes
}

/** A thread opens a file of which another connection is in use, and waits for that. */
async function assertWaits(t: Test, content: string | Buffer, use: string): Promise<void> {
  const path = join(createDirectory(t), 'plants.db')
  writeFileSync(path, content)
  const other = new DatabaseSync(path)
  other.exec(use)
  const arrived = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const outcomes = openInThread({ paths: [path], arrived, threads: 1 })
  await until(() => Atomics.load(arrived, 0) === 1)
  // Long enough to be refused in, and shorter than it waits.
  const early = await Promise.race([outcomes, sleep(700)])
  other.close()
  t.equal(early, undefined)
  t.strictSame(await outcomes, ['open'])
  t.equal(readVersionOf(path), migrations.length)
}

// SQLite itself does not wait for the lock that a connection asks for which reads.
test('a file that another process makes is waited for', (t) => assertWaits(t, '', 'BEGIN IMMEDIATE'))

test('a file that another process brings up to date is waited for', (t) =>
  assertWaits(t, readFileSync(keptFile), 'SELECT count(*) FROM plants'))

test('of many that open an older or a new file at once, none is refused', async (t) => {
  const [threads, files] = [4, 60]
  const directory = createDirectory(t)
  const paths = Array.from({ length: files }, (_, n) => join(directory, `${n}.db`))
  for (const path of paths.slice(files / 2)) copyFileSync(keptFile, path)
  const arrived = new Int32Array(new SharedArrayBuffer(files * Int32Array.BYTES_PER_ELEMENT))
  const workerData: OpenerData = { paths, arrived, threads }
  const outcomes = await Promise.all(Array.from({ length: threads }, () => openInThread(workerData)))
  t.strictSame(
    outcomes.flat().filter((outcome) => outcome !== 'open'),
    [],
  )
  t.equal(outcomes.flat().length, threads * files)
  t.strictSame(new Set(paths.map(readVersionOf)), new Set([migrations.length]))
})
