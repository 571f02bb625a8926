// Clients that mean no good: whatever they send, and however they leave, the service lives, answers each request once
// and in order, and says rightly whether the connection goes on.
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'tap'
import { createDirectory } from '../support/engines.ts'
import { isFull } from '../support/full.ts'
import { request, startApp, startService, token } from '../support/service.ts'
import { fillLarge } from '../support/stores.ts'
import { compose, readAnswers } from '../support/wire.ts'

const auth = `Host: a\r\nAuthorization: Bearer ${token}\r\n`
const json = `${auth}Content-Type: application/json\r\n`
const plant = '{"name":"a","tag":""}'

/** What a client may begin with before it goes away. */
const shapes: Record<string, string | Buffer> = {
  'a tunnel': 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
  'a tunnel behind a request': Buffer.concat([
    compose(),
    Buffer.from('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'),
  ]),
  'an upgrade': compose({ headers: { Connection: 'Upgrade', Upgrade: 'websocket' } }),
  'an upgrade with a body': compose({ body: plant, headers: { Connection: 'Upgrade', Upgrade: 'h2c' } }),
  'a list': compose(),
  'a list of no length': compose({ target: '/plants?limit=0' }),
  'many lists': Buffer.concat(Array.from({ length: 50 }, () => compose())),
  'an addition': compose({ body: plant }),
  'half a body': compose({ body: '{"name":', headers: { 'Content-Length': '100' } }),
  'half a body without a token': compose({
    body: '{"name":',
    headers: { 'Content-Length': '100', Authorization: undefined },
  }),
  'an expectation': compose({ body: '', headers: { 'Content-Length': '100', Expect: '100-continue' } }),
  'half a head': `GET /plants HTTP/1.1\r\n${auth}`,
  'a bad chunk': `POST /plants HTTP/1.1\r\n${json}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`,
  'an unknown path': compose({ target: '/x#%' }),
  garbage: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  nothing: '',
}
const visits = isFull ? 600 : 60
const clientsAtOnce = isFull ? 100 : 30

/** Sends bytes, and resets the connection: at once, or after the first bytes of an answer (at most a moment later). */
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

test('nothing that a client sends ends the process, even when it is gone at once', async (t) => {
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
  service.child.kill('SIGTERM')
  t.match(await service.ended, { code: 0, signal: null })
  t.equal(service.output().stderr, '', 'and has nothing to say about it')
})

test('a client that ends its half of the connection still gets its answers', async (t) => {
  const { port, url } = await startApp(t)
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).setEncoding('latin1')
  socket.end(Buffer.concat(Array.from({ length: 10 }, () => compose({ body: plant }))))
  const answers = readAnswers((await socket.toArray()).join(''))
  t.same(
    answers.map(({ status }) => status),
    Array.from({ length: 10 }, () => 200),
  )
  t.equal(((await request(`${url}/plants`)).json() as unknown[]).length, 10)
})

test('a client that ends its half of the connection is not sent a partial list as a whole one', async (t) => {
  const { port, store } = await startApp(t)
  const length = await fillLarge(store)
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.write(`GET /plants HTTP/1.0\r\n${auth}\r\n`)
  // What is on its way fills all buffers by then.
  await once(socket, 'readable')
  socket.end()
  let bytes = 0
  for await (const chunk of socket) bytes += chunk.length
  t.ok(bytes > length, `${bytes} bytes`)
})
