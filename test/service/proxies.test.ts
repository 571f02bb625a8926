// The proxies' configurations in deploy/proxies, run as they are but for addresses and certificates.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import type { Exchange } from '../../src/http/connection/exchange.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { findPorts } from '../support/postgres.ts'
import { startAdmin, startApp, token } from '../support/service.ts'
import { findProgram, skipWithout, type Tool } from '../support/tools.ts'
import { adaptConfiguration, ask, host, makeCertificate, nginxFolders, startProxy } from './proxies.ts'

const [nginx, haproxy, caddy] = ['nginx', 'haproxy', 'caddy'].map(findProgram)
/** Only Linux has further addresses on the loopback interface by itself. */
const needs = (proxy: Tool) => ({
  skip: process.platform === 'linux' ? skipWithout(proxy, 'openssl') : 'it needs 127.0.0.2',
})

/** An app with more plants than a proxy holds back, and what it notes of requests. */
async function startBehind(t: Test) {
  const accesses: Exchange[] = []
  const url = await sqlite.createDatabase(t)
  const running = await startApp(t, url, {
    env: { TRUST_PROXY: '127.0.0.1' },
    report: (access) => accesses.push(access),
  })
  const name = 'x'.repeat(200)
  const entries = Array.from({ length: 2000 }, (_, id) => ({ item: `{"name":"${name}","tag":""}`, id }))
  await running.store.log.append(entries)
  /** From now on nothing can be added, and everything be read. */
  const lock = () => {
    const other = new DatabaseSync(fileURLToPath(url), { timeout: 10_000 })
    t.teardown(() => other.close())
    other.exec('BEGIN IMMEDIATE')
  }
  return { ...running, accesses, lock }
}

/** What every proxy must pass on, and what it must not. */
async function checkProxy(t: Test, accesses: Exchange[], to: { port: number; ca: string }): Promise<void> {
  const authorization = `Bearer ${token}`
  const spoofed = { authorization, 'x-forwarded-for': '203.0.113.7' }
  const list = await ask('/plants', { ...to, headers: spoofed })
  t.equal(list.status, 200)
  t.equal(JSON.parse(list.body.toString()).length, 2000, 'a long list comes whole')
  t.equal(
    accesses.at(-1)?.remoteAddress,
    '127.0.0.2',
    'the address is that of the client, not what it claims',
  )
  const again = { ...spoofed, 'if-none-match': String(list.headers.etag) }
  t.equal((await ask('/plants', { ...to, headers: again })).status, 304)

  const headers = { authorization, 'content-type': 'application/json' }
  const plant = JSON.stringify({ name: 'Alder', tag: '' })
  t.match(await ask('/plants', { ...to, headers, body: plant }), { status: 200, body: Buffer.from(plant) })
  const large = (length: number) => JSON.stringify({ name: 'x'.repeat(length), tag: '' })
  for (const [asked, status] of [
    [ask('/plants', { ...to, headers, body: large(20_000) }), 413],
    [ask('/plants', { ...to, headers, body: large(2 ** 21) }), 413],
    [ask('/plants', to), 401],
    // No proxy waits for the body first.
    [ask('/plants', { ...to, headers: { 'content-length': '100' }, body: '' }), 401],
    [ask(`/plants?${'x'.repeat(9000)}`, to), 414],
  ] as const)
    t.match(await asked, { status, headers: { 'content-type': /^application\/problem\+json/ } })
}

/** While nothing can be added, the service still answers, and not the proxy. */
async function checkReadOnly(t: Test, to: { port: number; ca: string }): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  t.match(await ask('/plants?limit=1', { ...to, headers }), { status: 200 }, 'lists are served')
  const refused = await ask('/plants', { ...to, headers, body: JSON.stringify({ name: 'Ash', tag: '' }) })
  t.match(refused, { status: 503, headers: { 'retry-after': '1', 'content-type': /^application\/problem/ } })
}

test('nginx passes on what the service says, and the address of the client', needs('nginx'), async (t) => {
  const { port: servicePort, accesses, lock } = await startBehind(t)
  const directory = createDirectory(t)
  const { crt, key, text: ca } = makeCertificate(directory)
  const [port, nobody] = (await findPorts(2)) as [number, number]
  const path = join(directory, 'nginx.conf')
  const changes = {
    'http {': `http { access_log off; ${nginxFolders(directory)}`,
    '127.0.0.1:3000': `127.0.0.1:${servicePort}`,
    '# server 127.0.0.1:3001': `server 127.0.0.1:${nobody}`,
    'listen 443': `listen 127.0.0.1:${port}`,
    [`/etc/ssl/${host}.crt`]: crt,
    [`/etc/ssl/${host}.key`]: key,
  }
  writeFileSync(path, adaptConfiguration('nginx.conf', changes))
  const user = process.getuid?.() === 0 ? 'user root;' : ''
  const own = `daemon off; master_process off; error_log stderr; pid ${join(directory, 'pid')}; ${user}`
  const { until } = startProxy(t, nginx as string, ['-p', directory, '-c', path, '-g', own])
  await until(() =>
    ask('/openapi.json', { port, ca }).then(
      ({ status }) => status === 200,
      () => false,
    ),
  )
  await checkProxy(t, accesses, { port, ca })
  lock()
  await checkReadOnly(t, { port, ca })
})

test(
  'HAProxy passes on the same, and leaves out a replica that is not ready, unless none is',
  needs('haproxy'),
  async (t) => {
    const { port: servicePort, store, accesses, lock } = await startBehind(t)
    const { port: adminPort } = await startAdmin(t, store.ready)
    const directory = createDirectory(t)
    const { pem, text: ca } = makeCertificate(directory)
    const [port, nobody] = (await findPorts(2)) as [number, number]
    const path = join(directory, 'haproxy.cfg')
    const changes = {
      'bind :443': `bind 127.0.0.1:${port}`,
      [`/etc/haproxy/${host}.pem`]: pem,
      '127.0.0.1:3000 port 9090': `127.0.0.1:${servicePort} port ${adminPort}`,
      '127.0.0.1:3001 port 9091': `127.0.0.1:${nobody} port ${nobody}`,
    }
    writeFileSync(path, adaptConfiguration('haproxy.cfg', changes))
    const { said } = startProxy(t, haproxy as string, ['-db', '-f', path])
    await said(/Server plant-store\/two is DOWN/)
    await checkProxy(t, accesses, { port, ca })
    lock()
    await said(/backend 'plant-store' has no server available/)
    await checkReadOnly(t, { port, ca })
  },
)

test('Caddy passes on the same', needs('caddy'), async (t) => {
  const { port: servicePort, store, accesses, lock } = await startBehind(t)
  const { port: adminPort } = await startAdmin(t, store.ready)
  const directory = createDirectory(t)
  const { crt, key, text: ca } = makeCertificate(directory)
  const [port] = (await findPorts(1)) as [number]
  const path = join(directory, 'Caddyfile')
  // Without another port, where it would answer http and take orders.
  const site = `{\n\tadmin off\n\tauto_https off\n}\n${host}:${port} {\n\tbind 127.0.0.1\n\ttls ${crt} ${key}`
  const changes = {
    [`\n${host} {`]: `\n${site}`,
    '127.0.0.1:3000': `127.0.0.1:${servicePort} 127.0.0.3:${servicePort}`,
    '# health_uri': 'health_uri',
    '# health_port 9090': `health_port ${adminPort}`,
    '# health_interval': 'health_interval',
  }
  writeFileSync(path, adaptConfiguration('Caddyfile', changes))
  const args = ['run', '--adapter', 'caddyfile', '--config', path]
  const { said } = startProxy(t, caddy as string, args)
  await said(/serving initial configuration/)
  await said(/127\.0\.0\.3.*connection refused/)
  await checkProxy(t, accesses, { port, ca })
  lock()
  await checkReadOnly(t, { port, ca })
})
