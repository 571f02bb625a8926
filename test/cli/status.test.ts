// status: what a store contains, and the state of its servers.
import { type Test, test } from 'tap'
import { startCluster } from '../store/cluster.ts'
import { runCommand } from '../support/commands.ts'
import { addToken } from '../support/copies.ts'
import { createDirectory, engines, sqlite, testPostgres } from '../support/engines.ts'
import { startService } from '../support/service.ts'
import { add, open } from '../support/stores.ts'

const run = (t: Test, DATABASE_URL: string, ...args: string[]) =>
  runCommand(['status', ...args], { DATABASE_URL }, createDirectory(t))

async function read(t: Test, url: string) {
  const { code, stdout, stderr } = await run(t, url, '--json')
  t.strictSame({ code, stderr }, { code: 0, stderr: '' })
  return JSON.parse(stdout)
}

for (const engine of engines)
  test(`${engine.name}: status shows the contents of a store while a service runs`, async (t) => {
    const url = await engine.createDatabase(t)
    const missing = { code: 1, stdout: '', stderr: /^plant-store: [^\n]+\n$/ }
    t.match(await run(t, url), missing, 'the store does not exist')
    await startService(t, { DATABASE_URL: url, ACCESS_TOKENS: '' })
    t.match(await read(t, url), { engine: engine.name, head: 0 })

    const store = await open(t, url)
    await add(store, ...Array(1500).fill('a'))
    await store.tokens.revoke('00000000', 1)
    await addToken(store, 'past', { createdAt: 1, expiresAt: 2 })
    await addToken(store, 'future', { expiresAt: 2 ** 52 })
    await addToken(store, 'past and revoked', { createdAt: 1, expiresAt: 2, revokedAt: 2 })
    const status = await read(t, url)
    t.match(status, { store: store.id, head: 1500, tokens: { valid: 1, all: 4 } })
    if (engine === sqlite) t.equal(status.cluster, null)
    t.ok(status.bytes > 1500 * 20)
    const { stdout } = await run(t, url)
    t.match(stdout, /^head {5}1,500 plants$/m)
    t.match(stdout, /^tokens {3}1 valid of 4$/m)
  })

testPostgres('status shows the standbys of a cluster with their lag, to roles that may see it', async (t) => {
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
  t.match((await run(t, url)).stdout, /^standby {2}walreceiver: details require the role pg_monitor$/m)

  await cluster.caughtUp()
  const reversed = cluster.url().replace(/@[^/]*/, `@127.0.0.1:${standby.port},127.0.0.1:${primary.port}`)
  t.match(await read(t, reversed), { cluster: { role: 'primary' } }, 'whatever the order of the hosts')
  t.match(await read(t, standby.url()), {
    cluster: { server: `127.0.0.1:${standby.port}`, role: 'standby', standbys: [] },
  })
  const to = await sqlite.createDatabase(t)
  const copied = await runCommand(['copy', '--from', standby.url(), '--to', to])
  t.match(copied, { code: 1, stderr: 'plant-store: --from is a standby: use its primary\n' })
})
