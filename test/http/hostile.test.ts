// Hostile clients: whatever they send, and however they disconnect, the service keeps running.
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'tap'
import { cli } from '../support/commands.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { isFull } from '../support/full.ts'
import { inherited, spawnProgram } from '../support/processes.ts'
import { request, startApp, startService, token } from '../support/service.ts'
import { fillLarge } from '../support/stores.ts'
import { compose } from '../support/wire.ts'

const auth = `Host: a\r\nAuthorization: Bearer ${token}\r\n`
const json = `${auth}Content-Type: application/json\r\n`
const plant = '{"name":"a","tag":""}'

/** What clients send before they disconnect. */
const shapes: Record<string, string | Buffer> = {
  'a tunnel': 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
  'an upgrade': compose({ headers: { Connection: 'Upgrade', Upgrade: 'websocket' } }),
  'a list': compose(),
  'many lists': Buffer.concat(Array.from({ length: 50 }, () => compose())),
  'an addition': compose({ body: plant }),
  'half a body': compose({ body: '{"name":', headers: { 'Content-Length': '100' } }),
  'an expectation': compose({ body: '', headers: { 'Content-Length': '100', Expect: '100-continue' } }),
  'half a head': `GET /plants HTTP/1.1\r\n${auth}`,
  'a bad chunk': `POST /plants HTTP/1.1\r\n${json}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`,
  nothing: '',
}
const visits = isFull ? 600 : 60
const clientsAtOnce = isFull ? 100 : 30

/** Sends bytes, then resets the connection: at once, or at the first bytes of a response, but after at most 20 ms. */
function visit(port: number, bytes: string | Buffer, stay: boolean): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(bytes)
      if (stay) socket.setTimeout(20, leave).once('data', leave)
      else leave()
    })
    const leave = () => void socket.resetAndDestroy()
    socket.on('error', () => {})
    socket.on('close', () => resolve())
  })
}

test('survives any bytes from a client, even if it disconnects at once', async (t) => {
  const service = await startService(t, { LOG_LEVEL: 'error' }, createDirectory(t))
  const port = Number(new URL(service.url).port)
  for (const [name, bytes] of Object.entries(shapes)) {
    let left = visits
    const visitAll = async () => {
      while (left-- > 0) await visit(port, bytes, left % 2 === 0)
    }
    await Promise.all(Array.from({ length: clientsAtOnce }, visitAll))
    t.equal((await request(`${service.url}/plants?limit=0`)).text, '[]', name)
  }
  t.match(await service.stop(), { code: 0, signal: null })
  t.equal(service.output().stderr, '', 'the service logs no error')
})

test('a client that has closed its sending side still gets the whole list', async (t) => {
  const { port, store } = await startApp(t)
  const length = await fillLarge(store)
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.write(`GET /plants HTTP/1.0\r\n${auth}\r\n`)
  // By then, the list has filled all buffers.
  await once(socket, 'readable')
  socket.end()
  let bytes = 0
  for await (const chunk of socket) bytes += chunk.length
  t.ok(bytes > length, `${bytes} bytes`)
})

test('refuses a truncated body with a fixed detail', async (t) => {
  const { port } = await startApp(t)
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.end(String(shapes['half a body']))
  t.match(await text(socket), /^HTTP\/1.1 400 .*it ended too early/s)
})

const skip = process.platform === 'win32'

test('survives more requests for files than its limit of open files', { skip }, async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  const env = { ...inherited(), DATABASE_URL, PORT: '0', ACCESS_TOKENS: token }
  const line = `ulimit -n 256; exec '${process.execPath}' '${cli}' serve`
  const url = await spawnProgram(t, 'sh', ['-c', line], { env, input: null }).prints(/listening on (\S+)/)
  const get = (more = '') => `GET /docs/static/swagger-ui.css HTTP/1.1\r\nHost: a\r\n${more}\r\n`
  // Before the flood: a service without descriptors resets new connections.
  const open = async () => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.write('HEAD / HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(socket, 'data')
    return socket
  }
  const floods = (await Promise.all([open(), open(), open(), open()])).map((socket) => {
    socket.write(get().repeat(900) + get('Connection: close\r\n'))
    return text(socket)
  })
  t.ok((await Promise.all(floods)).every((answers) => answers.length > 0))
  t.equal((await request(`${url}/plants`)).text, '[]')
  // 45 % of the descriptors are for connections, by default.
  const many = Array.from({ length: 140 }, () => connect(Number(new URL(url).port), '127.0.0.1'))
  t.teardown(() => many.forEach((socket) => void socket.destroy()))
  const closing = many.map((socket) => once(socket.resume(), 'close').then(() => socket))
  const closed = await Promise.race(closing)
  t.match(closed, { bytesRead: 0 }, 'closed without a response, which a time-out would have')
})
