// status: what a store contains, and whether a service is running on it.
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Test, test } from 'tap'
import { findService } from '../../src/store/sqlite/sqlite-engine.ts'
import { startCluster } from '../store/cluster.ts'
import { runCommand } from '../support/commands.ts'
import { addToken } from '../support/copies.ts'
import { createDirectory, engines, findEngine, sqlite, testPostgres } from '../support/engines.ts'
import { startService } from '../support/service.ts'
import { open } from '../support/stores.ts'
import { until } from '../support/until.ts'

const { skip: noPostgres } = findEngine('PostgreSQL')

function run(t: Test, DATABASE_URL: string, ...args: string[]) {
  return runCommand(['status', ...args], { DATABASE_URL }, createDirectory(t))
}

async function read(t: Test, url: string) {
  const { code, stdout, stderr } = await run(t, url, '--json')
  t.strictSame({ code, stderr }, { code: 0, stderr: '' })
  return JSON.parse(stdout)
}

for (const engine of engines)
  test(`${engine.name}: status shows what the store contains, and whether a service is running`, async (t) => {
    const url = await engine.createDatabase(t)
    const missing = { code: 1, stdout: '', stderr: /^plant-store: [^\n]+\n$/ }
    t.match(await run(t, url), missing, 'the store does not exist')
    const service = await startService(t, { DATABASE_URL: url, ACCESS_TOKENS: '' })
    const running = await read(t, url)
    t.match(running, { engine: engine.name, head: 0, service: { running: true } })
    t.equal(running.service.by.length, 1)
    t.match(running.service.by[0], engine === sqlite ? `serve (${service.child.pid})` : 'serve (127.0.0.1)')
    t.match((await run(t, url)).stdout, /\nservice {2}running: serve/)
    service.child.kill('SIGKILL')
    await service.ended
    // A PostgreSQL server detects a lost client with some delay.
    await until(async () => (await read(t, url)).service.running === false)

    const store = await open(t, url)
    await store.log.append(
      Array.from({ length: 1500 }, () => ({ item: '{"name":"a","tag":""}', id: undefined })),
    )
    await store.tokens.revoke('00000000', 1)
    await addToken(store, 'past', { createdAt: 1, expiresAt: 2 })
    await addToken(store, 'future', { expiresAt: 2 ** 52 })
    await addToken(store, 'past and revoked', { createdAt: 1, expiresAt: 2, revokedAt: 2 })
    const status = await read(t, url)
    t.match(status, {
      store: store.id,
      head: 1500,
      tokens: { valid: 1, all: 4 },
      service: { running: false },
    })
    if (engine === sqlite) t.equal(status.cluster, null)
    t.ok(status.bytes > 1500 * 20)
    const { stdout } = await run(t, url)
    t.match(stdout, /^head {5}1,500 plants$/m)
    t.match(stdout, /^tokens {3}1 valid of 4$/m)
    t.match(stdout, engine === sqlite ? /not running; in use by node \(\d+\)\n$/ : /not running\n$/)
  })

testPostgres('status finds a service whose URL sets the name of its sessions', async (t) => {
  const url = await findEngine('PostgreSQL').engine.createDatabase(t)
  await startService(t, { DATABASE_URL: `${url}?options=-c%20application_name%3Dmine` })
  t.match(await read(t, url), { service: { running: true, by: ['serve (127.0.0.1)'] } })
})

test('status names the processes that hold locks', async (t) => {
  const directory = createDirectory(t)
  const path = join(directory, 'plants.db')
  writeFileSync(path, '')
  const { ino } = statSync(path)
  // As in proc_locks(5): the second waits for the first; the last belongs to another file.
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

test('without a list of locks, status trusts only a missing write-ahead log', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  const db = new DatabaseSync(path)
  db.exec('CREATE TABLE a (b)')
  t.strictSame(findService(path, '/nowhere'), { running: false, by: [] })
  db.exec('PRAGMA journal_mode = WAL; INSERT INTO a VALUES (1)')
  t.strictSame(findService(path, '/nowhere'), { running: null, by: [] })
  db.close()
})

test('status shows the standbys of a cluster with their lag, to roles that may see it', {
  skip: noPostgres,
}, async (t) => {
  const cluster = await startCluster(t, { standbys: 1, synchronous: true })
  const { primary, standbys } = cluster
  const [standby] = standbys as [(typeof standbys)[0]]
  await open(t, cluster.url())
  const seen = await read(t, cluster.url())
  t.match(seen.cluster, {
    server: `127.0.0.1:${primary.port}`,
    role: 'primary',
    standbys: [{ name: 'walreceiver', address: '127.0.0.1', state: 'streaming', sync: 'quorum' }],
  })
  t.type(seen.cluster?.standbys[0]?.lagBytes, 'number')
  const text = /^standby {2}walreceiver at 127\.0\.0\.1: streaming, quorum, [\d,]+ bytes? behind/m
  t.match((await run(t, cluster.url())).stdout, text)

  await primary.query('CREATE ROLE visitor LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO visitor')
  const url = primary.url().replace('postgres@', 'visitor@')
  t.match((await read(t, url)).cluster.standbys, [{ name: 'walreceiver', state: null, lagBytes: null }])
  const hidden = /^standby {2}walreceiver: more is visible only to the role pg_monitor$/m
  t.match((await run(t, url)).stdout, hidden)

  await cluster.caughtUp()
  const reversed = cluster.url().replace(/@[^/]*/, `@127.0.0.1:${standby.port},127.0.0.1:${primary.port}`)
  t.match(await read(t, reversed), { cluster: { role: 'primary' } }, 'whatever the order of the hosts')
  t.match(await read(t, standby.url()), {
    cluster: { server: `127.0.0.1:${standby.port}`, role: 'standby', standbys: [] },
    service: { running: null },
  })
  t.match((await run(t, standby.url())).stdout, /^service {2}unknown/m)
  const to = await sqlite.createDatabase(t)
  const copied = await runCommand(['copy', '--from', standby.url(), '--to', to])
  t.match(copied, { code: 1, stderr: 'plant-store: --from is a standby: name its primary\n' })
})
