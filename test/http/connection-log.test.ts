// What happens below HTTP has its line, too: bytes that are no request, requests that never come, connections that break.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import type { Exchange } from '../../src/http/connection/exchange.ts'
import { ConnectionLog } from '../../src/logging/connection-log.ts'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { sqlite } from '../support/engines.ts'
import { openFailing } from '../support/failing-store.ts'
import { collectLines } from '../support/log-lines.ts'
import { request, startApp } from '../support/service.ts'
import { compose, send } from '../support/wire.ts'

async function start(t: Test) {
  const log = collectLines()
  const running = await startApp(t, await sqlite.createDatabase(t), { logger: log.logger })
  return { ...running, ...log, connections: () => log.lines.filter(({ msg }) => msg === 'connection') }
}

async function open(t: Test, port: number, bytes = ''): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  if (bytes) socket.write(bytes)
  return socket
}

test('what is answered below the router has a line with its status, reason and id', async (t) => {
  const { app, port, connections } = await start(t)
  app.server.headersTimeout = 100
  const cases: [bytes: string, status: number, reason: string][] = [
    ['garbage\r\n\r\n', 400, 'HPE_INVALID_METHOD'],
    [`GET /plants HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'HPE_HEADER_OVERFLOW'],
    ['GET /plants HTTP/1.1\r\nHost: a\r\n', 408, 'ERR_HTTP_REQUEST_TIMEOUT'],
    ['CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 404, 'tunnel'],
  ]
  for (const [bytes, status, reason] of cases) {
    const { headers } = await send(port, bytes)
    const requestId = headers.get('x-request-id')
    t.match(connections().at(-1), { level: 30, status, reason, requestId, remoteAddress: '127.0.0.1' })
  }
  t.equal(connections().length, cases.length, 'one line each')
})

test('a connection that breaks before its request is there has a line', async (t) => {
  const { app, port, find } = await start(t)
  for (const end of ['destroySoon', 'resetAndDestroy', 'here'] as const) {
    const accepted = once(app.server, 'connection')
    const client = await open(t, port, 'GET /plants HTTP/1.1\r\n')
    const [socket] = (await accepted) as [Socket]
    while (socket.bytesRead === 0) await new Promise(setImmediate)
    if (end === 'here') socket.destroy()
    else client[end]()
    await new Promise((closed) => socket.once('close', closed))
  }
  t.match(await find(({ reason }) => reason === 'reset'), { level: 30, remoteAddress: '127.0.0.1' })
  t.match(await find(({ reason }) => reason === 'HPE_INVALID_EOF_STATE'), { status: 400 })
  t.match(await find(({ reason }) => reason === 'no request'), { level: 30 })
})

test('a port probe is not logged', async (t) => {
  const { app, port, find, connections } = await start(t)
  const accepted = once(app.server, 'connection')
  const client = await open(t, port)
  const [socket] = (await accepted) as [Socket]
  client.destroy()
  await new Promise((closed) => socket.once('close', closed))
  t.match(await find(({ msg }) => msg === 'connection'), { level: 20, reason: 'unused' })
  t.equal(connections().length, 1)
})

test('requests, and connections that end after them, have no connection line', async (t) => {
  const { url, port, connections, app } = await start(t)
  await request(`${url}/plants`)
  await send(port, compose({ body: '{', headers: { 'Content-Length': '1', Connection: 'close' } }))
  const body = compose({
    body: '{"name":',
    headers: { 'Transfer-Encoding': 'chunked', 'Content-Length': undefined },
  })
  t.equal((await send(port, body)).status, 400, 'a body that breaks has the line of its request')
  await app.close()
  t.same(connections(), [])
})

test('a client that left before its answer has the line of its request alone', async (t) => {
  const { logger, lines } = collectLines()
  const { store } = await openFailing(t)
  const stuck = Promise.withResolvers<never>()
  const log = { ...store.log, append: () => stuck.promise }
  const ended = Promise.withResolvers<number>()
  const report = ({ status }: Exchange) => ended.resolve(status)
  const { app, port } = await startApp(t, '', { store: { ...store, log }, logger, report })
  const accepted = once(app.server, 'connection')
  const client = await open(t, port, compose({ body: '{"name":"a","tag":""}' }).toString())
  const [socket] = (await accepted) as [Socket]
  // Behind its end, a reset is an EPIPE for the answer.
  const over = once(socket, 'end')
  client.end()
  await over
  client.resetAndDestroy()
  await once(client, 'close')
  stuck.reject(new StoreUnavailable('nothing-added', 'as the test wants it'))
  t.equal(await ended.promise, 499)
  await app.close()
  t.same(
    lines.filter(({ msg }) => msg === 'connection'),
    [],
  )
})

test('a flood of garbage has a few lines, and one that says how many were left out', async (t) => {
  const { app, port, lines, connections } = await start(t)
  for (let n = 0; n < 50; n++) await send(port, 'garbage\r\n\r\n')
  t.equal(connections().length, 20)
  await app.close()
  const told = lines.filter(({ msg }) => /left out/.test(msg))
  t.match(told, [{ level: 30, leftOut: 30 }])
  t.equal(told.length, 1)
})

test('each time that lines are omitted is told of, when the window is over', (t) => {
  const { setTimeout } = globalThis
  t.teardown(() => Object.assign(globalThis, { setTimeout }))
  const timers: (() => void)[] = []
  Object.assign(globalThis, { setTimeout: (work: () => void) => ({ unref: () => timers.push(work) }) })
  const { logger, lines } = collectLines()
  const log = new ConnectionLog(logger)
  for (const omitted of [5, 3]) {
    for (let n = 0; n < omitted + (omitted === 5 ? 20 : 0); n++) log.add({} as Socket, { reason: 'reset' })
    t.equal(timers.length, 1, 'one timer for all of them')
    timers.pop()?.()
    t.equal(lines.at(-1)?.leftOut, omitted)
  }
  t.equal(lines.length, 22)
  t.end()
})

test('the number of omitted lines is logged once', async (t) => {
  const { logger, lines } = collectLines()
  const log = new ConnectionLog(logger)
  for (let n = 0; n < 25; n++) log.add({} as Socket, { reason: 'reset' })
  for (let n = 0; n < 2; n++) log.close()
  const told = lines.flatMap(({ leftOut }) => leftOut ?? [])
  t.same([told, lines.length], [[5], 21])
})
