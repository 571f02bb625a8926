// The operator's server: liveness and readiness, on a port of its own.
import dns from 'node:dns'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import pino from 'pino'
import { type Test, test } from 'tap'
import { Shutdown } from '../../src/service/shutdown.ts'
import { ask, findAdmin, startAdmin } from '../support/admin.ts'
import { createDirectory, type Engine, engines, ownServer, sqlite } from '../support/engines.ts'
import { findPorts } from '../support/postgres.ts'
import { assertProblem } from '../support/problem.ts'
import { request, spawnCli, startService } from '../support/service.ts'
import { openStore } from '../support/sql-store.ts'
import { until } from '../support/until.ts'
import { compose, send } from '../support/wire.ts'

const logger = pino({ level: 'silent' })
const last = engines.at(-1) as Engine
const ready = { status: 200, text: '{"status":"ready"}\n' }
const unready = (reason: string) => ({ status: 503, text: `{"status":"unready","reason":"${reason}"}\n` })

async function startReady(t: Test, env: NodeJS.ProcessEnv) {
  const service = await startService(t, { ADMIN_PORT: '0', ...env }, createDirectory(t))
  const admin = await findAdmin(service)
  for (const path of ['readyz', 'readyz?verbose']) {
    const answer = await ask(`${admin}/${path}`)
    t.match(answer, ready, path)
    t.equal(answer.headers.get('content-type'), 'application/json')
    t.equal(answer.headers.get('cache-control'), 'no-store')
    t.equal(answer.headers.get('x-content-type-options'), 'nosniff')
  }
  t.match(await ask(`${admin}/livez`), { status: 200, text: '{"status":"live"}\n' })
  assertProblem(t, await request(`${service.url}/metrics`), 404)
  return { service, admin }
}

test('SQLite: a service reports that it lives, and that it is ready', async (t) => {
  const { service } = await startReady(t, {})
  service.child.kill('SIGTERM')
  t.match(await service.ended, { code: 0 })
})

test('the admin server refuses like the service, with the same headers', async (t) => {
  const { url, port } = await startAdmin(t)
  assertProblem(t, await ask(`${url}/plants`), 404, { typed: false })
  for (const method of ['POST', 'DELETE']) {
    const answer = await ask(`${url}/livez`, { method })
    assertProblem(t, answer, 405, { typed: false })
    t.equal(answer.headers.get('allow'), 'GET, HEAD')
  }
  const options = await ask(`${url}/livez`, { method: 'OPTIONS' })
  t.same([options.status, options.headers.get('allow')], [204, 'GET, HEAD'])
  const head = await ask(`${url}/livez`, { method: 'HEAD' })
  t.match(head, { status: 200, text: '' })
  t.equal(head.headers.get('content-length'), '18')
  t.match(head.headers.get('x-request-id'), /./)
  const target = `http://127.0.0.1:${port}/metrics`
  const absolute = await send(port, compose({ target, headers: { Host: 'localhost' } }))
  t.match(absolute, { status: 200, text: /process_cpu/ })
  const malformed = await send(port, 'GET / HTTP/1.1\r\nno header\r\n\r\n')
  assertProblem(t, malformed, 400)
})

test('a page of another name cannot read it over the loopback address', async (t) => {
  const { port } = await startAdmin(t, undefined, { ADMIN_HOST: '0.0.0.0' })
  const statusFor = async (host: string, from = '127.0.0.1') => {
    const socket = connect(port, from)
    socket.end(compose({ target: '/metrics', headers: { Host: host, Connection: 'close' } }))
    return (await socket.toArray()).join('')
  }
  for (const host of [
    `127.0.0.1:${port}`,
    'localhost',
    'LOCALHOST:9090',
    'plants.localhost',
    'plant-store:9090',
    '[::1]:9090',
    '[::ffff:127.0.0.1]',
    '10.1.2.3:3001',
    '',
  ])
    t.match(await statusFor(host), /^HTTP\/1\.1 200 /, host)
  for (const host of [
    'evil.example',
    `evil.example:${port}`,
    '127.0.0.1.evil.example',
    'localhost.evil.example',
  ]) {
    const answer = await statusFor(host)
    t.match(answer, /^HTTP\/1\.1 400 /, host)
    t.match(answer, '"detail":"must be an address, localhost or ADMIN_HOST","parameter":"Host"')
    t.notMatch(answer, 'process_')
  }
  const [outside] = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
  if (outside) t.match(await statusFor('plants.example:9090', outside.address), /^HTTP\/1\.1 200 /)
  const both = await startAdmin(t, undefined, { ADMIN_HOST: '::' })
  const mapped = { target: '/metrics', headers: { Host: 'evil.example' } }
  t.match(await send(both.port, compose(mapped)), { status: 400 }, 'an IPv4 address on a socket of IPv6')
  const named = await startAdmin(t, undefined, { ADMIN_HOST: 'localhost' })
  t.match(await ask(`http://localhost:${named.port}/livez`), { status: 200 })
})

test('ADMIN_HOST may have capitals, which no name that is asked for has', async (t) => {
  const { lookup } = dns
  t.teardown(() => Object.assign(dns, { lookup }))
  const find = (name: string, ...rest: unknown[]) =>
    Reflect.apply(lookup, dns, [name === 'Box.Example' ? '127.0.0.1' : name, ...rest])
  Object.assign(dns, { lookup: find })
  const { port } = await startAdmin(t, undefined, { ADMIN_HOST: 'Box.Example' })
  for (const Host of ['box.example', 'Box.Example', 'localhost'])
    t.match(await send(port, compose({ target: '/livez', headers: { Host } })), { status: 200 }, Host)
  t.match(await send(port, compose({ target: '/livez', headers: { Host: 'box2.example' } })), { status: 400 })
})

test('a process with a thread that hangs is not live', async (t) => {
  const { url, health } = await startAdmin(t, async () => {})
  health.serve({ ready: async () => {} }, { hasHung: true })
  t.match(await ask(`${url}/livez`), { status: 503, text: '{"status":"hung","reason":"thread-hangs"}\n' })
})

test('a store that cannot be written, or does not answer, is the reason for not being ready', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  t.teardown(() => store.close())
  let state: 'works' | 'fails' | 'hangs' = 'works'
  let asked = 0
  const answers = {
    works: () => store.ready(),
    fails: () => Promise.reject(new Error('secret of the inside')),
    hangs: () => hanging.promise,
  }
  const hanging = Promise.withResolvers<void>()
  const { url } = await startAdmin(t, () => {
    asked++
    return answers[state]()
  })
  t.match(await ask(`${url}/readyz`), ready)
  state = 'fails'
  t.match(await ask(`${url}/readyz`), unready('store-not-writable'))
  state = 'hangs'
  asked = 0
  const both = await Promise.all([1, 2].map(() => ask(`${url}/readyz`)))
  for (const answer of both) t.match(answer, unready('store-not-writable'))
  t.match(await ask(`${url}/readyz`), unready('store-not-writable'))
  t.equal(asked, 1, 'a store that does not answer is asked once')
  t.equal((await ask(`${url}/livez`)).status, 200)
  state = 'works'
  hanging.resolve()
  t.match(await ask(`${url}/readyz`), ready)
})

test('a database whose commits wait for a missing standby is not ready', async (t) => {
  const server = await ownServer()
  const store = await openStore(server.url(), { logger })
  t.teardown(() => store.close())
  const { url } = await startAdmin(t, store.ready)
  const isReady = async () => (await ask(`${url}/readyz`)).status === 200
  await until(isReady)
  const reset = async () => {
    await server.query('ALTER SYSTEM RESET synchronous_standby_names')
    await server.query('SELECT pg_reload_conf()')
  }
  t.teardown(reset)
  await server.query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
  await server.query('SELECT pg_reload_conf()')
  // The server's processes read their settings in their own time.
  await until(async () => !(await isReady()))
  t.match(await ask(`${url}/readyz`), unready('store-not-writable'))
  await t.rejects(Promise.resolve<unknown>(store.log.head()), { name: 'StoreUnavailable', outcome: 'unread' })
  await reset()
  await until(isReady)
})

test('a service that is about to end is not ready, whatever the state of its store', async (t) => {
  const checking = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const { url, health } = await startAdmin(t, () => {
    asked.resolve()
    return checking.promise
  })
  const early = ask(`${url}/readyz`)
  await asked.promise
  health.drain()
  t.match(await ask(`${url}/readyz`), unready('draining'))
  checking.resolve()
  t.match(await early, unready('draining'), 'it was told while the store was asked')
  health.serve({ ready: async () => {} })
  t.match(await ask(`${url}/readyz`), unready('draining'), 'its start ends after it was told')
})

const answers = (url: string) =>
  ask(url).then(
    () => true,
    () => false,
  )

test('a service whose database does not answer yet lives, and says that it is starting', async (t) => {
  const [port, ADMIN_PORT] = await findPorts(2)
  const DATABASE_URL = `postgres://nobody:secret@127.0.0.1:${port}/plants`
  const service = spawnCli(t, ['serve'], { PORT: '0', ADMIN_PORT: `${ADMIN_PORT}`, DATABASE_URL })
  const admin = `http://127.0.0.1:${ADMIN_PORT}`
  await until(() => answers(`${admin}/livez`))
  t.match(await ask(`${admin}/readyz`), unready('starting'))
  t.equal((await ask(`${admin}/livez`)).status, 200)
  t.equal((await ask(`${admin}/metrics`)).status, 200)
  t.match(await service.ended, { code: 1 })
  t.match(service.output().stderr, /cannot use the database/)
  t.notMatch(service.output().stderr, /secret/)
})

test('a service that is told to end while it starts does so at once', async (t) => {
  const [port, ADMIN_PORT] = await findPorts(2)
  const DATABASE_URL = `postgres://nobody:secret@127.0.0.1:${port}/plants`
  const service = spawnCli(t, ['serve'], { PORT: '0', ADMIN_PORT: `${ADMIN_PORT}`, DATABASE_URL })
  await until(() => answers(`http://127.0.0.1:${ADMIN_PORT}/livez`))
  service.child.kill('SIGTERM')
  t.match(await service.ended, { code: 0, signal: null })
})

test('a signal right after the first one does not count as a second', async (t) => {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const before = signals.map((signal) => process.listeners(signal))
  t.teardown(() => {
    for (const [n, signal] of signals.entries()) {
      process.removeAllListeners(signal)
      for (const listener of before[n] ?? []) process.on(signal, listener as () => void)
    }
  })
  let nowMs = 1000
  let isOver = false
  const shutdown = new Shutdown(() => nowMs)
  const draining = Promise.withResolvers<void>()
  const finish = async () => {
    await shutdown.delay(3_600_000)
    isOver = true
    draining.resolve()
    await new Promise(() => {})
  }
  shutdown.arm({ finish, limitMs: 3_600_000 })
  for (const signal of signals) process.emit(signal)
  await new Promise(setImmediate)
  t.notOk(isOver)
  nowMs += 501
  process.emit('SIGTERM')
  await draining.promise
})

test(`${last.name}: a service is ready, with DRAIN_DELAY it goes on for a while and ends each connection with its answer`, async (t) => {
  const { service, admin } = await startReady(t, {
    DATABASE_URL: await last.createDatabase(t),
    DRAIN_DELAY: '3600',
  })
  service.child.kill('SIGTERM')
  await until(async () => (await ask(`${admin}/readyz`)).text !== ready.text)
  t.match(await ask(`${admin}/readyz`), unready('draining'))
  const added = await request(`${service.url}/plants`, { body: { name: 'late', tag: '' } })
  t.equal(added.status, 200)
  t.equal(added.headers.get('connection'), 'close')
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  socket.end(compose({ target: '/plants' }))
  t.match((await socket.toArray()).join(''), /^HTTP\/1\.1 200 .*connection: close.*"late"/is)
  let isRunning = true
  const ended = service.ended.then(() => (isRunning = false))
  while (isRunning) {
    service.child.kill('SIGTERM')
    await Promise.race([ask(`${admin}/livez`).catch(() => {}), ended])
  }
  t.match(await service.ended, { code: 0, signal: null }, 'another signal ends the delay')
})
