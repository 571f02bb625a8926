// A host that stands for several addresses is served by one server on all of them.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import pino from 'pino'
import { type Test, test } from 'tap'
import { readConfig } from '../../src/config/load-config.ts'
import { buildApp } from '../../src/service/app.ts'
import { listen } from '../../src/service/listen.ts'
import { sqlite } from '../support/engines.ts'
import { request, token } from '../support/service.ts'
import { openStore } from '../support/sql-store.ts'
import { compose } from '../support/wire.ts'

/** Starts an app on some addresses, and resolves to it and its port. */
async function start(t: Test, addresses: string[], env: NodeJS.ProcessEnv = {}, port = 0) {
  const logger = pino({ level: 'silent' })
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  const app = await buildApp({ store, logger, config: readConfig({ ACCESS_TOKENS: token, ...env }) })
  t.teardown(async () => {
    await app.close()
    await store.close()
  })
  await listen(app, { host: 'localhost', port }, async () => addresses)
  return { app, port: (app.server.address() as AddressInfo).port }
}

/** The first line of what is answered to a message, or the code of the error. */
async function ask(host: string, port: number, message: string | Buffer): Promise<string> {
  const socket = connect(port, host).setEncoding('latin1')
  socket.write(message)
  const answer = once(socket, 'data').then(([text]) => String(text).split('\r\n', 1)[0] as string)
  const first = await answer.catch(({ code }) => String(code))
  socket.end().resume()
  if (!socket.closed) await once(socket, 'close')
  return first
}

const list = compose({ headers: { Connection: 'close' } })

test('both addresses have the same store and the same limits, and both end', async (t) => {
  const { app, port } = await start(t, ['127.0.0.1', '::1'], { MAX_CONNECTIONS: '1' })
  const added = compose({
    body: JSON.stringify({ name: 'Alder', tag: '' }),
    headers: { Connection: 'close' },
  })
  t.equal(await ask('127.0.0.1', port, added), 'HTTP/1.1 200 OK')
  t.equal(await ask('::1', port, list), 'HTTP/1.1 200 OK')
  const half = connect({ port, host: '::1', allowHalfOpen: true })
  half.end(added)
  t.match((await half.toArray()).join(''), /^HTTP\/1\.1 200 OK\r\n/, 'to a client that sends no more')
  t.equal(await ask('::1', port, 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n'), 'HTTP/1.1 404 Not Found')

  // One that is idle would make room.
  const only = connect(port, '127.0.0.1')
  only.write(compose({ body: '', headers: { 'Content-Length': '100', Expect: '100-continue' } }))
  await once(only, 'data')
  t.equal(await ask('::1', port, list), 'HTTP/1.1 503 Service Unavailable')
  only.destroy()

  await app.close()
  for (const host of ['127.0.0.1', '::1']) t.equal(await ask(host, port, list), 'ECONNREFUSED')
})

test('an unavailable address is left out', async (t) => {
  const { app, port } = await start(t, ['127.0.0.1', '192.0.2.1'])
  t.equal((await request(`http://127.0.0.1:${port}/plants`)).text, '[]')
  await app.close()
})

test('a start is refused when a stranger listens on one of the addresses, who would be sent the tokens', async (t) => {
  const stranger = createServer().listen({ host: '::1', port: 0 })
  t.teardown(() => stranger.close())
  await once(stranger, 'listening')
  const { port } = stranger.address() as AddressInfo
  await t.rejects(start(t, ['127.0.0.1', '::1'], {}, port), { code: 'EADDRINUSE', address: '::1' })
})
