// Clients that mean no good: whatever they send, and however they leave, the service lives, answers each request once
// and in order, and says rightly whether the connection goes on.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'tap'
import { examples } from '../../schemas/examples.ts'
import { assertWithin, isFull } from '../support/full.ts'
import '../support/short-limits.ts'
import type { WireAnswer } from '../support/wire.ts'

const { createDirectory, sqlite } = await import('../support/engines.ts')
const { assertProblem } = await import('../support/problem.ts')
const { request, startApp, startService, token } = await import('../support/service.ts')
const { compose, exchange, readAnswers } = await import('../support/wire.ts')

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

test('a CONNECT request is refused in its turn', async (t) => {
  const { port, url } = await startApp(t, await sqlite.createDatabase(t))
  await request(`${url}/plants`, { body: { name: 'a', tag: '' } })
  const bytes = Buffer.concat([compose(), compose(), Buffer.from('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n')])
  const answers = await exchange(port, bytes, Number.POSITIVE_INFINITY)
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 404],
  )
  t.equal(answers[0]?.text, `[${plant}]`)
  t.equal(answers[2]?.headers.get('connection'), 'close')
})

test('a request with an upgrade is answered, and is the last on its connection', async (t) => {
  const { port, url } = await startApp(t, await sqlite.createDatabase(t))
  const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket' }
  for (const first of [compose({ headers: upgrade }), compose({ body: plant, headers: upgrade })]) {
    const smuggled = compose({ body: '{"name":"smuggled","tag":""}' })
    // In one segment, and in one that follows.
    for (const parts of [[Buffer.concat([first, smuggled])], [first, smuggled]]) {
      const socket = connect(port, '127.0.0.1')
      for (const part of parts) await new Promise((sent) => socket.write(part, sent))
      const answers = readAnswers(await readAll(socket))
      t.same(
        answers.map(({ status }) => status),
        [200],
      )
      t.equal(answers[0]?.headers.get('connection'), 'close')
    }
  }
  t.equal((await request(`${url}/plants`)).text, `[${plant},${plant}]`)
})

test('the same holds for a path that cannot be decoded', async (t) => {
  const { port } = await startApp(t, await sqlite.createDatabase(t))
  const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket' }
  const bytes = Buffer.concat([compose({ target: '/%', headers: upgrade }), compose(), compose()])
  const answers = await exchange(port, bytes, Number.POSITIVE_INFINITY)
  t.same(
    answers.map(({ status, headers }) => [status, headers.get('connection')]),
    [[400, 'close']],
  )
})

/** All that comes until the server hangs up. */
async function readAll(socket: Socket): Promise<string> {
  let received = ''
  socket.setEncoding('latin1').on('data', (chunk) => (received += chunk))
  socket.on('error', () => {})
  await once(socket, 'close')
  return received
}

const early: [status: number, head: string][] = [
  [401, 'POST /plants HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n'],
  [404, `POST /x HTTP/1.1\r\n${json}`],
  [405, `PUT /plants HTTP/1.1\r\n${json}`],
  [415, `POST /plants HTTP/1.1\r\n${auth}Content-Type: text/plain\r\n`],
  [417, `POST /plants HTTP/1.1\r\n${json}Expect: 200-maybe\r\n`],
]

test('a request that is answered before its body arrives has only that answer', async (t) => {
  const { port } = await startApp(t, await sqlite.createDatabase(t))
  const large: [number, string] = [413, `POST /plants HTTP/1.1\r\n${json}`]
  for (const [status, head] of [...early, large])
    for (const end of ['a half-close', 'a bad chunk']) {
      const length = status === 413 ? 1_000_000 : 100
      const framing =
        end === 'a bad chunk' && status !== 413 ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
      const received = readAll(socket)
      socket.write(`${head}${framing}\r\n\r\n`)
      await once(socket, 'data')
      if (end === 'a bad chunk') socket.write('xyz\r\nxyz\r\n')
      socket.end()
      const answers = readAnswers(await received)
      t.same(
        answers.map((answer) => answer.status),
        [status],
        `${status}, then ${end}`,
      )
    }
})

type Line = { title: string; bytes: string; status: number; connection: string; again?: boolean }

/** What an error says of its connection; `again`: another request is answered on it. */
const lines: Line[] = [
  {
    title: '1.1',
    bytes: `GET /x HTTP/1.1\r\n${auth}\r\n`,
    status: 404,
    connection: 'keep-alive',
    again: true,
  },
  {
    title: '1.1, close',
    bytes: `GET /x HTTP/1.1\r\n${auth}Connection: close\r\n\r\n`,
    status: 404,
    connection: 'close',
  },
  { title: '1.0', bytes: `GET /x HTTP/1.0\r\n${auth}\r\n`, status: 404, connection: 'close' },
  {
    title: '1.0, keep-alive',
    bytes: `GET /x HTTP/1.0\r\n${auth}Connection: keep-alive\r\n\r\n`,
    status: 404,
    connection: 'keep-alive',
    again: true,
  },
  {
    title: 'a small body that is not read',
    bytes: `POST /x HTTP/1.1\r\n${json}Content-Length: 21\r\n\r\n${plant}`,
    status: 404,
    connection: 'keep-alive',
    again: true,
  },
  {
    title: 'a body that is not JSON',
    bytes: `POST /plants HTTP/1.1\r\n${json}Content-Length: 1\r\n\r\nx`,
    status: 400,
    connection: 'keep-alive',
    again: true,
  },
  {
    title: 'a body that is held back',
    bytes: `POST /plants HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 21\r\n\r\n`,
    status: 401,
    connection: 'close',
  },
  {
    title: 'a body that is too large',
    bytes: `POST /plants HTTP/1.1\r\n${json}Content-Length: 1000000\r\n\r\n`,
    status: 413,
    connection: 'close',
  },
  {
    title: 'a body of unknown size that is not read',
    bytes: `POST /x HTTP/1.1\r\n${json}Transfer-Encoding: chunked\r\n\r\n`,
    status: 404,
    connection: 'close',
  },
]

test('an error says correctly whether its connection stays open', async (t) => {
  const { port } = await startApp(t, await sqlite.createDatabase(t))
  for (const { title, bytes, status, connection, again } of lines) {
    const follow = `GET /plants?limit=0 HTTP/1.1\r\n${auth}Connection: close\r\n\r\n`
    const socket = connect(port, '127.0.0.1')
    const received = readAll(socket)
    socket.write(bytes)
    await once(socket, 'data')
    socket.write(follow)
    const answers = readAnswers(await received)
    t.same(
      answers.map((answer) => answer.status),
      again ? [status, 200] : [status],
      title,
    )
    t.equal(answers[0]?.headers.get('connection'), connection, title)
  }
})

test('a large body that is still being sent does not cost the client its answer', async (t) => {
  const { port } = await startApp(t, await sqlite.createDatabase(t))
  const bytes = compose({
    body: '',
    headers: { 'Content-Length': '50000000', 'Content-Type': 'application/json' },
  })
  const socket = connect(port, '127.0.0.1')
  const received = readAll(socket)
  const send = Buffer.concat([
    Buffer.from(bytes.toString().replace('GET', 'POST')),
    Buffer.alloc(8_000_000, ' '),
  ])
  socket.write(send)
  const [answer] = readAnswers(await received) as [WireAnswer]
  t.match(answer, { status: 413 })
  t.match(JSON.parse(answer.text), { title: 'Content Too Large' })
})

/** A request that expects 100 Continue, and the statuses that it must get before it has sent anything of its body. */
const expecting: [title: string, head: string, statuses: string[]][] = [
  ['a good one', `POST /plants HTTP/1.1\r\n${json}Content-Length: 21\r\n`, ['100']],
  ['one that is too large', `POST /plants HTTP/1.1\r\n${json}Content-Length: 20000\r\n`, ['413']],
  [
    'another media type',
    `POST /plants HTTP/1.1\r\n${auth}Content-Type: text/plain\r\nContent-Length: 21\r\n`,
    ['415'],
  ],
  ['a coding', `POST /plants HTTP/1.1\r\n${json}Content-Encoding: gzip\r\nContent-Length: 21\r\n`, ['415']],
  [
    'no token',
    'POST /plants HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 21\r\n',
    ['401'],
  ],
  ['an unknown path', `POST /x HTTP/1.1\r\n${json}Content-Length: 21\r\n`, ['404']],
]

test('100 Continue is said once nothing in the head speaks against the body', async (t) => {
  const { port } = await startApp(t, await sqlite.createDatabase(t))
  for (const [title, head, statuses] of expecting) {
    const socket = connect(port, '127.0.0.1')
    socket.write(`${head}Expect: 100-continue\r\n\r\n`)
    const [first] = await once(socket, 'data')
    t.same(String(first).match(/(?<=^HTTP\/1.1 )\d+/gm), statuses, title)
    if (statuses[0] === '100') {
      socket.write(plant)
      const [second] = await once(socket, 'data')
      t.match(String(second), /^HTTP\/1.1 200 /)
    }
    socket.destroy()
  }
})

test('Expect is ignored in HTTP/1.0', async (t) => {
  const { port } = await startApp(t, await sqlite.createDatabase(t))
  for (const expect of ['100-continue', '200-maybe']) {
    const bytes = `POST /plants HTTP/1.0\r\n${json}Expect: ${expect}\r\nContent-Length: 21\r\n\r\n${plant}`
    const answers = await exchange(port, bytes, Number.POSITIVE_INFINITY)
    t.same(
      answers.map(({ status }) => status),
      [200],
      expect,
    )
  }
})

test('a client that ends its half of the connection still gets its answers', async (t) => {
  const { port, url } = await startApp(t, await sqlite.createDatabase(t))
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const received = readAll(socket)
  socket.end(Buffer.concat(Array.from({ length: 10 }, () => compose({ body: plant }))))
  const answers = readAnswers(await received)
  t.same(
    answers.map(({ status }) => status),
    Array.from({ length: 10 }, () => 200),
  )
  t.equal(((await request(`${url}/plants`)).json() as unknown[]).length, 10)
})

/** Ways to end the sending half while a long list is on its way. */
const halves: [title: string, rest: string][] = [
  ['between requests', '\r\n'],
  ['in the middle of a body', 'Content-Length: 100\r\n\r\nabc'],
]

test('a client that ends its half of the connection is not sent a partial list as a whole one', async (t) => {
  const { port, store } = await startApp(t, await sqlite.createDatabase(t))
  const item = JSON.stringify({ name: 'x'.repeat(255), tag: 'x'.repeat(255) })
  const count = 40_000
  for (let n = 0; n < count; n += 1000)
    await store.log.append(Array.from({ length: 1000 }, () => ({ item, id: undefined })))
  for (const [title, rest] of halves) {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.write(`GET /plants HTTP/1.0\r\n${auth}${rest}`)
    // What is on its way fills all buffers by then.
    await once(socket, 'readable')
    socket.end()
    let bytes = 0
    for await (const chunk of socket) bytes += chunk.length
    t.ok(bytes > count * item.length, `${title}: ${bytes} bytes`)
  }
})

/** How late an answer may be that says that a request is late. */
const slackMs = 2000
const late: [title: string, limitMs: number, bytes: string | Buffer, status: number][] = [
  ['half a head', 10_000, `GET /plants HTTP/1.1\r\n${auth}`, 408],
  ['half a body', 20_000, shapes['half a body'] as Buffer, 408],
  // Its answer is out before its body is late: there is no second one.
  ['half a body without a token', 20_000, shapes['half a body without a token'] as Buffer, 401],
]

test('a request that does not come in time is answered 408, once, and the connection ends', async (t) => {
  const { port, url } = await startApp(t, await sqlite.createDatabase(t))
  const come = async ([title, limitMs, bytes, status]: (typeof late)[0]) => {
    const startMs = performance.now()
    const socket = connect(port, '127.0.0.1')
    socket.write(bytes)
    const answers = readAnswers(await readAll(socket))
    const tookMs = performance.now() - startMs
    t.equal(answers.length, 1, title)
    const problem = assertProblem(t, answers[0] as WireAnswer, status)
    if (status === 408) t.same(problem, examples.RequestTimeout.late)
    if (isFull && status === 408) t.ok(tookMs > limitMs - 100, `${title}: not before its time`)
    assertWithin(t, tookMs, limitMs + slackMs, title)
  }
  await Promise.all(late.map(come))
  t.equal((await request(`${url}/plants`)).text, '[]')
})
