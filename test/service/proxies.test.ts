// What the proxies of deploy/proxies forward.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { type Test, test } from 'tap'
import { sqlite } from '../support/engines.ts'
import { root } from '../support/processes.ts'
import { token } from '../support/service.ts'
import { add, openStore } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { type Address, ask, type Behind, proxies, startBehind } from './proxies.ts'

const authorization = `Bearer ${token}`
const json = { authorization, 'content-type': 'application/json' }

/** Starts a service with more plants than a proxy buffers. `lock`: makes every addition fail from then on. */
async function startFilled(t: Test) {
  const DATABASE_URL = await sqlite.createDatabase(t)
  const store = await openStore(DATABASE_URL)
  await add(store, ...Array(2000).fill('x'.repeat(200)))
  await store.close()
  const lock = () => {
    const other = new DatabaseSync(new URL(DATABASE_URL), { timeout: 10_000 })
    t.teardown(() => other.close())
    other.exec('BEGIN IMMEDIATE')
  }
  return { service: await startBehind(t, { DATABASE_URL }), lock }
}

/** Asserts what a proxy must forward, and what it must not. */
async function checkProxy(t: Test, service: Behind, to: Address): Promise<void> {
  const spoofed = { authorization, 'x-forwarded-for': '203.0.113.7' }
  const list = await ask('/plants', { ...to, headers: spoofed })
  t.equal(list.status, 200)
  t.equal(JSON.parse(list.body.toString()).length, 2000, 'a long list is complete')
  const logged = () => Object.values(service.output()).join('')
  await until(() => logged().includes('"127.0.0.2"'), { found: logged })
  t.notOk(logged().includes('203.0.113.7'), 'the address is the real one of the client')
  const again = { ...spoofed, 'if-none-match': String(list.headers.etag) }
  t.equal((await ask('/plants', { ...to, headers: again })).status, 304)

  const plant = JSON.stringify({ name: 'Alder', tag: '' })
  const added = await ask('/plants', { ...to, headers: json, body: plant })
  t.match(added, { status: 200, body: Buffer.from(plant) })
  const large = (length: number) => JSON.stringify({ name: 'x'.repeat(length), tag: '' })
  for (const [asked, status] of [
    // Small enough to be sent completely before the refusal; otherwise the client may see only a reset.
    [ask('/plants', { ...to, headers: json, body: large(20_000) }), 413],
    [ask('/plants', to), 401],
    // The proxies forward the head without waiting for the body.
    [ask('/plants', { ...to, headers: { 'content-length': '100' }, body: '' }), 401],
    [ask(`/plants?${'x'.repeat(9000)}`, to), 414],
  ] as const)
    t.match(await asked, { status, headers: { 'content-type': /^application\/problem\+json/ } })
}

for (const { name, skip, start } of Object.values(proxies))
  test(`${name} forwards requests, responses and the address of the client`, { skip }, async (t) => {
    const { service, lock } = await startFilled(t)
    const { said, ...to } = await start(t, service)
    await checkProxy(t, service, to)
    lock()
    // HAProxy uses an unready replica if there is no other.
    if (name === 'haproxy') await said(/backend 'plant-store' has no server available/)
    t.match(await ask('/plants?limit=1', { ...to, headers: json }), { status: 200 }, 'lists are served')
    const refused = await ask('/plants', { ...to, headers: json, body: '{"name":"Ash","tag":""}' })
    const headers = { 'retry-after': '1', 'content-type': /^application\/problem/ }
    t.match(refused, { status: 503, headers }, 'the service answers, not the proxy')
  })

const noNginx = proxies.nginx.skip

test('the command in docs/secure.md includes the limits of nginx.conf', { skip: noNginx }, async (t) => {
  const page = readFileSync(`${root}docs/secure.md`, 'utf8')
  const command = /^ +(sed -n .*) \| sudo tee/m.exec(page)?.[1] as string
  const taken = execFileSync('sh', ['-c', command], { cwd: root, encoding: 'utf8' })
  for (const limit of ['limit_conn_zone ', 'limit_conn addresses ', 'client_header_timeout '])
    t.match(taken, limit)
  t.notMatch(taken, /^http|^events/m)
  t.equal(taken.split('{').length, taken.split('}').length)
})
