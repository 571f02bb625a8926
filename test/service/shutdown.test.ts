// SIGTERM and SIGINT: requests in flight are finished, then the process exits in time. launcher.test.ts has a request
// that is half sent.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { readPlants } from '../cli/imports.ts'
import { Ledger, post } from '../store/ledger.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { assertWithin, isFull } from '../support/full.ts'
import { preload } from '../support/processes.ts'
import { ask, findAdmin, request, type Service, startApp, startService, token } from '../support/service.ts'
import { fillLarge, openStore } from '../support/stores.ts'
import '../support/short-limits.ts'
import { until } from '../support/until.ts'
import { compose, readAnswers } from '../support/wire.ts'

/** The longest shutdown, and the longest one if every client reads its responses. */
const maxMs = 10_000
const servedMs = 5000

async function open(t: Test, service: Pick<Service, 'url'>, bytes: string | Buffer): Promise<Socket> {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  socket.write(bytes)
  return socket
}

/** Signals a service and asserts that it exits with 0 in time. Resolves to how long it took. */
async function stop(t: Test, service: Service, signal: NodeJS.Signals): Promise<number> {
  const startMs = performance.now()
  service.child.kill(signal)
  t.match(await service.ended, { code: 0, signal: null })
  const tookMs = performance.now() - startMs
  assertWithin(t, tookMs, maxMs)
  return tookMs
}

for (const signal of ['SIGTERM', 'SIGHUP'] as const)
  test(`${signal} ends a service under load without losing an acknowledged plant`, async (t) => {
    const database = await sqlite.createDatabase(t)
    const service = await startService(t, { DATABASE_URL: database })
    const ledger = new Ledger()
    const stopping = ledger.more(200).then(() => stop(t, service, signal))
    const writing = Array.from({ length: 16 }, async (_, writer) => {
      for (let n = 0; await post(ledger, service.url, { name: `${writer}-${n}`, tag: '' }); n++);
    })
    await Promise.all(writing)
    assertWithin(t, await stopping, servedMs)
    t.same([ledger.refused.size, ledger.unknown], [0, 0], 'every request before the end is acknowledged')
    t.match(service.output().stderr, `"signal":"${signal}"`)
    t.same(ledger.findFaults((await readPlants(database)).map(({ name }) => name)), [])
  })

test('idle connections, half-sent requests and slow readers do not delay a shutdown', async (t) => {
  const database = await sqlite.createDatabase(t)
  const store = await openStore(database)
  await fillLarge(store)
  await store.close()
  const service = await startService(t, { DATABASE_URL: database })
  const idle = await open(t, service, compose({ target: '/plants?limit=0' }))
  await once(idle, 'data')
  await open(t, service, '')
  await open(t, service, 'GET /plants HTTP/1.1\r\nHost: a\r\n')
  await open(t, service, compose({ body: '{"name":', headers: { 'Content-Length': '100' } }))
  const bytes = `GET /plants HTTP/1.0\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`
  const slow = await open(t, service, bytes)
  await once(slow, 'readable')
  await stop(t, service, 'SIGTERM')
  await t.rejects(slow.resume().toArray(), { code: 'ECONNRESET' }, 'the client detects the partial list')
  t.equal(service.output().stderr.match(/"status":499/g)?.length, 2, 'a line for each that was cut')
})

test('closes no connection before its client has received all responses', async (t) => {
  const { app, port, store } = await startApp(t)
  await fillLarge(store, 1000)
  const client = connect(port, '127.0.0.1')
  const [socket] = await once(app.server, 'connection')
  let asked = 0
  app.server.on('request', () => asked++)
  for (; socket.writableLength === 0; await sleep(20)) client.write(compose({ target: '/plants?limit=450' }))
  const closed = app.close()
  await sleep(500)
  t.equal(readAnswers(String(Buffer.concat(await client.toArray()))).length, asked)
  await closed
})

test('an unused connection does not delay a shutdown', async (t) => {
  const service = await startService(t, { ADMIN_PORT: '0', MAX_CONNECTIONS: '2' }, createDirectory(t))
  const admin = await findAdmin(service)
  for (const url of [service.url, admin]) await open(t, { url }, '')
  t.equal((await request(`${service.url}/plants`)).status, 200)
  await once(await open(t, service, ''), 'close')
  t.match((await ask(`${admin}/metrics`)).text, '\nplant_store_connections_dropped_total 1\n')
  const tookMs = await stop(t, service, 'SIGTERM')
  t.ok(tookMs < (isFull ? 6000 : 2000), `${tookMs} ms`)
})

test('exits with 1 if it cannot stop in time', async (t) => {
  const endless = preload("import http from 'node:http'; http.Server.prototype.close = () => {}").NODE_OPTIONS
  const NODE_OPTIONS = `${endless} ${process.env.TEST_NODE_OPTIONS ?? ''}`
  const service = await startService(t, { NODE_OPTIONS }, createDirectory(t))
  t.match(await service.stop(), { code: 1 })
})

test('responds to requests whose heads end after the signal', async (t) => {
  const service = await startService(t, {}, createDirectory(t))
  const bodies = ['{"name":"a","tag":""}', '{']
  const requests = [...bodies.map((body) => compose({ body })), compose()]
  const sockets = await Promise.all(requests.map((bytes) => open(t, service, bytes.subarray(0, 30))))
  // After this, the service has read what was sent before.
  await request(`${service.url}/plants`)
  service.child.kill('SIGTERM')
  await until(() => service.output().stderr.includes('stopping'))
  for (const [n, socket] of sockets.entries()) socket.write(requests[n]?.subarray(30) as Buffer)
  const texts = await Promise.all(sockets.map((socket) => socket.toArray()))
  const answers = texts.flatMap((parts) => readAnswers(String(Buffer.concat(parts))))
  const told = answers.map(({ status, headers }) => `${status} ${headers.get('connection')}`)
  t.same(told, ['200 close', '400 close', '200 close'])
  t.match(await service.ended, { code: 0 })
})

test('waits for a DRAIN_DELAY that exceeds the time limit of a shutdown', async (t) => {
  const service = await startService(t, { DRAIN_DELAY: isFull ? '12' : '5' }, createDirectory(t))
  const startMs = performance.now()
  // npm and the launcher may both forward a signal: the second one is an echo.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) service.child.kill(signal)
  t.match(await service.ended, { code: 0, signal: null })
  t.ok(performance.now() - startMs > 4000)
})
