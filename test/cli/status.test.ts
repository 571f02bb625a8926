// status: what a store says of itself, and whether a service runs on it.
import { copyFileSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type Test, test } from 'tap'
import { readStatus } from '../../src/maintenance/status/read-status.ts'
import { formatStatus } from '../../src/maintenance/status/status-text.ts'
import { findService } from '../../src/store/sqlite/find-service.ts'
import { Tokens } from '../../src/tokens/tokens.ts'
import { startCluster } from '../support/cluster.ts'
import { runCommand } from '../support/commands.ts'
import { open } from '../support/copies.ts'
import { createDirectory, engines, sqlite } from '../support/engines.ts'
import { startService } from '../support/service.ts'

const released = fileURLToPath(new URL('../fixtures/plants-1.0.0.db', import.meta.url))

function run(t: Test, DATABASE_URL: string, ...args: string[]) {
  return runCommand(['status', ...args], { DATABASE_URL }, createDirectory(t))
}

async function readJson(t: Test, url: string) {
  const { code, stdout, stderr } = await run(t, url, '--json')
  t.strictSame({ code, stderr }, { code: 0, stderr: '' })
  return JSON.parse(stdout)
}

for (const engine of engines)
  test(`${engine.name}: status shows what is in the store, and sees the service come and go`, async (t) => {
    const url = await engine.createDatabase(t)
    t.match(
      await run(t, url),
      { code: 1, stdout: '', stderr: /^plant-store: [^\n]+\n$/ },
      'there is no store',
    )
    const service = await startService(t, { DATABASE_URL: url, ACCESS_TOKENS: '' })
    const running = await readJson(t, url)
    t.match(running, { engine: engine.name, head: 0, epochs: 1, service: { running: true } })
    t.equal(running.service.by.length, 1)
    t.match(running.service.by[0], engine === sqlite ? `serve (${service.child.pid})` : 'serve (127.0.0.1)')
    t.match(formatStatus(await readStatus(url)), /\nservice {2}running: serve/)
    service.child.kill('SIGKILL')
    await service.ended
    // A server of PostgreSQL notices a moment later that its client is gone.
    const isOver = async () => (await readStatus(url)).service.running === false
    for (let looks = 0; looks < 50; looks++) if (await isOver()) break

    const store = await open(t, url)
    await store.log.append(
      Array.from({ length: 1500 }, () => ({ item: '{"name":"a","tag":""}', id: undefined })),
    )
    await new Tokens(store.tokens, () => 1).create({ name: 'past', expiresAt: 2 })
    await new Tokens(store.tokens).create({ name: 'future', expiresAt: 2 ** 52 })
    await new Tokens(store.tokens).revoke('00000000')
    const both = await new Tokens(store.tokens, () => 1).create({ name: 'past and revoked', expiresAt: 2 })
    await new Tokens(store.tokens).revoke(both.slice(6, 14))
    const status = await readJson(t, url)
    t.match(status, {
      schemaVersion: 2,
      store: store.id,
      head: 1500,
      tokens: { active: 1, expired: 1, revoked: 2 },
      service: { running: false },
    })
    t.ok(status.bytes > 1500 * 20)
    if (engine === sqlite) {
      const path = url.slice('file:'.length)
      t.equal(status.bytes, statSync(path).size + statSync(`${path}-wal`).size)
    }
    const { stdout } = await run(t, url)
    t.match(stdout, /^head {5}1,500 plants, 1 epoch$/m)
    t.match(stdout, /^tokens {3}1 active, 1 expired, 2 revoked$/m)
    t.match(stdout, engine === sqlite ? /not running; in use by node \(\d+\)\n$/ : /not running\n$/)
  })

for (const engine of engines.filter(({ name }) => name === 'PostgreSQL'))
  test('the services of one address are named together, with the number of their threads', async (t) => {
    const url = await engine.createDatabase(t)
    await startService(t, { DATABASE_URL: url })
    await startService(t, { DATABASE_URL: url, THREADS: '2' })
    t.strictSame((await readStatus(url)).service, { running: true, by: ['serve (127.0.0.1, 3 threads)'] })
  })

test('a store of 1.0.0 is shown as it is, and not brought up to date', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  copyFileSync(released, path)
  const backup = new DatabaseSync(path)
  backup.exec('PRAGMA journal_mode = DELETE')
  backup.close()
  t.match(await readStatus(pathToFileURL(path).href), { schemaVersion: 1, epochs: 0, cluster: null })
  const db = new DatabaseSync(path)
  t.equal(db.prepare('PRAGMA user_version').get()?.user_version, 1)
  db.close()
})

test('the holder of a lock is named, as far as it is known', async (t) => {
  const directory = createDirectory(t)
  const path = join(directory, 'plants.db')
  writeFileSync(path, '')
  const { ino } = statSync(path)
  // As in proc_locks(5): the second waits for the first, and the last is of another file.
  const lines = [
    `1: POSIX  ADVISORY  READ 41 fe:00:${ino} 1073741826 1073742335`,
    `1: -> POSIX  ADVISORY  READ 42 fe:00:${ino} 1073741826 1073742335`,
    `2: POSIX  ADVISORY  READ 43 fe:00:${ino} 128 128`,
    `3: POSIX  ADVISORY  READ 44 fe:00:${ino + 1} 1073741826 1073742335`,
  ]
  writeFileSync(join(directory, 'locks'), `${lines.join('\n')}\n`)
  mkdirSync(join(directory, '42'))
  writeFileSync(join(directory, '42', 'cmdline'), 'node\0/srv/src/cli.ts\0serve\0')
  t.strictSame(findService(path, directory), { running: true, by: ['process (41)', 'serve (42)'] })
})

test('where the system does not tell who holds locks, only a missing write-ahead log is proof', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  const db = new DatabaseSync(path)
  db.exec('CREATE TABLE a (b)')
  t.strictSame(findService(path, '/nowhere'), { running: false, by: [] })
  db.exec('PRAGMA journal_mode = WAL; INSERT INTO a VALUES (1)')
  t.strictSame(findService(path, '/nowhere'), { running: null, by: [] })
  db.close()
})

test('the standbys of a cluster are shown with their lag, to roles that may see it', async (t) => {
  const cluster = await startCluster(t, { standbys: 1, synchronous: true })
  const { primary, standbys } = cluster
  const [standby] = standbys as [(typeof standbys)[0]]
  await open(t, cluster.url())
  const seen = await readStatus(cluster.url())
  t.match(seen.cluster, {
    server: `127.0.0.1:${primary.port}`,
    role: 'primary',
    standbys: [{ name: 'walreceiver', address: '127.0.0.1', state: 'streaming', sync: 'quorum' }],
  })
  t.type(seen.cluster?.standbys[0]?.lagBytes, 'number')
  const text = /^standby {2}walreceiver at 127\.0\.0\.1: streaming, quorum, [\d,.]+ (bytes|MB) behind/m
  t.match(formatStatus(seen), text)

  await primary.query('CREATE ROLE visitor LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO visitor')
  const url = primary.url().replace('postgres@', 'visitor@')
  t.match((await readStatus(url)).cluster?.standbys, [{ name: 'walreceiver', state: null, lagBytes: null }])
  t.match(
    formatStatus(await readStatus(url)),
    /^standby {2}walreceiver: only the role pg_monitor may see more$/m,
  )

  await cluster.caughtUp()
  const reversed = cluster.url().replace(/@[^/]*/, `@127.0.0.1:${standby.port},127.0.0.1:${primary.port}`)
  t.match(await readStatus(reversed), { cluster: { role: 'primary' } }, 'wherever it stands')
  const alone = await readStatus(standby.url())
  t.match(alone, {
    cluster: { server: `127.0.0.1:${standby.port}`, role: 'standby', standbys: [] },
    service: { running: null },
  })
  t.match(formatStatus(alone), /^service {2}not known/m)
})

test('the words for values that were not measured are left out', async (t) => {
  const standby = {
    name: 'a',
    address: null,
    state: 'catchup',
    sync: 'async',
    lagBytes: 2e6,
    lagSeconds: 0.5,
  }
  const status = {
    version: '2.0.0',
    engine: 'PostgreSQL' as const,
    engineVersion: '18',
    schemaVersion: 2,
    store: 'x',
    head: 1,
    epochs: 2,
    bytes: 0,
    tokens: { active: 0, expired: 0, revoked: 0 },
    service: { running: true, by: [] },
    cluster: {
      server: 'a:1',
      role: 'primary' as const,
      standbys: [standby, { ...standby, lagBytes: null, lagSeconds: null }],
      unsafe: ['full_page_writes'],
      loss: { after: 2, last: 5, at: '2026-11-25T07:00:00.000Z' },
    },
  }
  const lines = formatStatus(status).split('\n')
  t.match(lines, [
    'version  2.0.0',
    'engine   PostgreSQL 18, schema version 2',
    'store    x',
    'head     1 plant, 2 epochs',
  ])
  t.strictSame(lines.slice(-5), [
    'standby  a at localhost: catchup, async, 2.0 MB behind (0.500 s)',
    'standby  a at localhost: catchup, async, 0 bytes behind',
    'warning  full_page_writes is off on the database server: when its machine fails, the database can be damaged',
    'warning  plants were lost below the service: the log went on to position 5, and the database has it only to 2 (2026-11-25T07:00:00.000Z)',
    'service  running',
  ])
})
