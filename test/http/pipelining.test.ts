// Requests in a row on one connection: some may be outstanding, each has its answer, and behind an answer that ends the
// connection nothing is served.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import { lingerBytes, requestsPerConnection } from '../../src/limits.ts'
import { collect } from '../../src/runtime/garbage.ts'
import { sqlite } from '../support/engines.ts'
import { type Running, request, startApp } from '../support/service.ts'
import { until } from '../support/until.ts'
import { compose, readAnswers, type WireAnswer } from '../support/wire.ts'

const plant = '{"name":"a","tag":""}'
const anonymous = { Authorization: undefined }
/** More than one read brings. */
const many = 1000

type Seen = { parsed: number; most: number }

/** Counts the requests that Node hands over, and how many of them had no answer at one moment. */
function watch({ app }: Running): Seen {
  const seen = { parsed: 0, most: 0 }
  let open = 0
  app.server.prependListener('request', (_request, response) => {
    seen.parsed++
    seen.most = Math.max(seen.most, ++open)
    response.on('close', () => open--)
  })
  return seen
}

async function start(t: Test): Promise<Running & { seen: Seen }> {
  const running = await startApp(t, await sqlite.createDatabase(t), { env: { AUTH_FAILURE_LIMIT: 'off' } })
  return { ...running, seen: watch(running) }
}

/** A client that goes on sending whatever it is told, until the connection is closed. */
function openDeaf(t: Test, port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).setEncoding('latin1')
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  return socket
}

const rows: [title: string, one: Buffer, status: number][] = [
  ['lists', compose({ target: '/plants?limit=0' }), 200],
  ['additions', compose({ body: plant }), 200],
  ['requests without a token', compose({ headers: anonymous }), 401],
  ['requests without a route', compose({ target: '/x', headers: anonymous }), 404],
  ['bodies that are not read', compose({ target: '/x', body: 'x', headers: anonymous }), 404],
]

/** The answers to so many requests in a row, until the service ends the connection or there are `count` of them. */
async function sendInRow(socket: Socket, one: Buffer, count: number): Promise<WireAnswer[]> {
  const answers = Promise.withResolvers<WireAnswer[]>()
  let received = ''
  const take = (text: string) => {
    received += text
    if (readAnswers(received).length >= count) answers.resolve(readAnswers(received))
  }
  socket.on('data', take).once('end', () => answers.resolve(readAnswers(received)))
  socket.once('error', answers.reject)
  socket.write(Buffer.concat(Array.from({ length: count }, () => one)))
  const all = await answers.promise
  socket.off('data', take)
  return all
}

for (const [title, one, status] of rows) {
  test(`${title}, ${requestsPerConnection} in a row: all are answered, and the connection goes on`, async (t) => {
    const { port, seen } = await start(t)
    const socket = openDeaf(t, port)
    for (let round = 1; round <= 3; round++) {
      const answers = await sendInRow(socket, one, requestsPerConnection)
      t.same([...new Set(answers.map((answer) => answer.status))], [status])
      t.same([...new Set(answers.map(({ headers }) => headers.get('connection')))], ['keep-alive'])
      t.equal(answers.length, requestsPerConnection)
      t.equal(seen.parsed, round * requestsPerConnection)
    }
  })

  for (const count of [requestsPerConnection + 1, 50, 500, 5000])
    test(`${title}, ${count} in a row: the last that is answered says so, and no other is begun`, async (t) => {
      const { port, url, seen } = await start(t)
      const answers = await sendInRow(openDeaf(t, port), one, count)
      t.same([...new Set(answers.map((answer) => answer.status))], [status])
      t.equal(answers.length, requestsPerConnection + 1)
      t.same(
        answers.map(({ headers }) => headers.get('connection')),
        answers.map((_, n) => (n < requestsPerConnection ? 'keep-alive' : 'close')),
      )
      t.equal(seen.parsed, answers.length)
      const added = ((await request(`${url}/plants`)).json() as unknown[]).length
      t.equal(added, title === 'additions' ? answers.length : 0)
    })
}

test('a request for a tunnel behind the last request of a connection is not served', async (t) => {
  const { port } = await start(t)
  const one = compose({ target: '/plants?limit=0' })
  const many = Array.from({ length: requestsPerConnection + 1 }, () => one)
  const tunnel = 'CONNECT plants.test:443 HTTP/1.1\r\nHost: plants.test:443\r\n\r\n'
  const answers = await sendInRow(openDeaf(t, port), Buffer.concat([...many, Buffer.from(tunnel)]), 1)
  t.same(
    answers.map(({ status }) => status),
    many.map(() => 200),
  )
})

test('a long list before a request for a tunnel comes whole', async (t) => {
  const { port, store } = await start(t)
  const text = '🌿'.repeat(255)
  const item = JSON.stringify({ name: text, tag: text })
  await store.log.append(Array.from({ length: 2000 }, () => ({ item, id: undefined })))
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  const tunnel = 'CONNECT plants.test:443 HTTP/1.1\r\nHost: plants.test:443\r\n\r\n'
  socket.write(Buffer.concat([compose(), Buffer.from(tunnel)]))
  let bytes = 0
  socket.on('data', (chunk) => (bytes += chunk.length))
  await until(() => bytes > 2000 * Buffer.byteLength(item))
  t.ok(bytes < 2001 * (Buffer.byteLength(item) + 1))
})

test('a client that repeats what was not answered has all of its plants added once', async (t) => {
  const { port, url } = await start(t)
  for (let sent = 0; sent < 100; ) {
    const rest = Array.from({ length: 100 - sent }, (_, n) =>
      compose({ body: JSON.stringify({ name: `${sent + n}`, tag: '' }) }),
    )
    const answers = await sendInRow(openDeaf(t, port), Buffer.concat(rest), 1)
    sent += answers.length
  }
  const names = ((await request(`${url}/plants`)).json() as { name: string }[]).map(({ name }) => name)
  t.same(
    names,
    Array.from({ length: 100 }, (_, n) => `${n}`),
  )
})

test('a body in pieces after pipelined requests is read in its turn', async (t) => {
  const { port, url } = await start(t)
  const socket = openDeaf(t, port)
  const whole = compose({ body: plant })
  const before = Buffer.concat(Array.from({ length: requestsPerConnection - 1 }, () => whole))
  let received = ''
  socket.on('data', (chunk) => (received += chunk))
  for (let cut = 1; cut < whole.length; cut += 20) {
    received = ''
    socket.write(Buffer.concat([before, whole.subarray(0, cut)]))
    await once(socket, 'data')
    socket.write(whole.subarray(cut))
    while (readAnswers(received).length < requestsPerConnection) await once(socket, 'data')
    t.same([...new Set(readAnswers(received).map(({ status }) => status))], [200], `cut at ${cut}`)
  }
  const added = ((await request(`${url}/plants`)).json() as unknown[]).length
  t.equal(added, requestsPerConnection * Math.ceil((whole.length - 1) / 20))
})

const endings: [title: string, bytes: Buffer, status: number][] = [
  ['an upgrade that is ignored', compose({ headers: { ...anonymous, Upgrade: 'x' } }), 401],
  ['Connection: close', compose({ headers: { Connection: 'close' } }), 200],
  [
    'a body of unknown length without a token',
    compose({ method: 'POST', headers: { ...anonymous, 'Transfer-Encoding': 'chunked' } }),
    401,
  ],
  ['a body that is too large', compose({ method: 'POST', headers: { 'Content-Length': '9999999' } }), 415],
  ['a tunnel', Buffer.from('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'), 404],
  ['no request', Buffer.from('x\r\n\r\n'), 400],
]

for (const [title, bytes, status] of endings)
  test(`${title}: what a half-open client sends behind it is not served`, async (t) => {
    const { port, seen } = await start(t)
    const socket = openDeaf(t, port)
    let received = ''
    socket.on('data', (chunk) => (received += chunk))
    socket.write(bytes)
    const flood = Buffer.concat(Array.from({ length: many }, () => compose({ target: '/' })))
    const send = () => socket.write(flood, (error) => error ?? send())
    send()
    await new Promise((closed) => socket.once('close', closed))
    t.same(
      readAnswers(received).map((answer) => answer.status),
      [status],
    )
    t.ok(seen.parsed <= 1, `${seen.parsed} served`)
  })

for (const [title, bytes, status] of endings)
  test(`${title}: a client that sends all before it reads has the answer`, async (t) => {
    const { port } = await start(t)
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).setEncoding('latin1')
    t.teardown(() => socket.destroy())
    const sent = Buffer.concat([bytes, Buffer.alloc(lingerBytes / 2, compose({ target: '/' }))])
    await new Promise<void>((done, failed) => socket.once('error', failed).end(sent, done))
    let received = ''
    for await (const chunk of socket) received += chunk
    t.same(
      readAnswers(received).map((answer) => answer.status),
      [status],
    )
  })

test('a connection keeps nothing of a request that was answered', async (t) => {
  const { app, port } = await start(t)
  const heads: WeakRef<object>[] = []
  app.server.prependListener('request', (request) => heads.push(new WeakRef(request)))
  const client = connect(port, '127.0.0.1').setEncoding('latin1')
  t.teardown(() => client.destroy())
  let received = ''
  client.on('data', (text) => {
    received += text
  })
  client.write(Buffer.concat([compose(), compose()]))
  await until(() => readAnswers(received).length === 2)
  // What is under way in this turn may still hold them.
  await new Promise((later) => setTimeout(later, 10))
  collect('major')
  t.strictSame(
    heads.map((head) => head.deref()),
    [undefined, undefined],
  )
})
