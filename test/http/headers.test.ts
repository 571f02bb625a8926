// Headers of all responses: nosniff, no name of the software, keep-alive, request ids and CORS.
import { once } from 'node:events'
import { connect } from 'node:net'
import { type Test, test } from 'tap'
import { makeMask } from '../../src/mask.ts'
import { makeToken } from '../../src/tokens/format.ts'
import { assertProblem } from '../support/problem.ts'
import { request, startApp } from '../support/service.ts'
import { compose, exchange, type Parts, readAnswers, send } from '../support/wire.ts'

const mask = makeMask(['a-token-for-tests'])
const made = /^[0-9a-f]{10}-[0-9a-z]+$/
const open = { Authorization: undefined }
const dates = {
  'If-Modified-Since': new Date().toUTCString(),
  'If-Unmodified-Since': new Date(0).toUTCString(),
}
const ranged = { ...open, ...dates, Range: 'bytes=999999-', 'If-Match': '"x"' }
const preflight = { Origin: 'https://a.test', 'Access-Control-Request-Method': 'POST', ...open }

/** One response of each kind. */
const answers: [title: string, status: number, parts: Parts][] = [
  ['a plant', 200, { body: '{"name":"a","tag":"b","id":1}' }],
  ['a list', 200, {}],
  ['the head of a list', 200, { method: 'HEAD' }],
  ['a list with an unknown Expect', 200, { headers: { Expect: 'more' } }],
  ['a list that has not changed', 304, { headers: { 'If-None-Match': '*' } }],
  ['a preflight', 204, { method: 'OPTIONS', headers: preflight }],
  ['an OPTIONS that is no preflight', 204, { method: 'OPTIONS', headers: open }],
  ['the home page', 200, { target: '/', headers: open }],
  ['the docs', 200, { target: '/docs', headers: open }],
  ['the head of the docs', 200, { target: '/docs', method: 'HEAD', headers: open }],
  ['a range of a file of the docs', 200, { target: '/docs/static/swagger-ui.css', headers: ranged }],
  ['the page of a problem', 200, { target: '/problems/id-conflict', headers: open }],
  ['the contract', 200, { target: '/openapi.yaml', headers: open }],
  ['an unknown path', 404, { target: '/x' }],
  ['a path that cannot be decoded', 400, { target: '/%ff' }],
  ['a preflight without Host', 400, { method: 'OPTIONS', headers: { Host: undefined } }],
  ['a preflight in gzip', 400, { method: 'OPTIONS', headers: { 'Transfer-Encoding': 'gzip, chunked' } }],
]

test('every response has nosniff and a request id, and does not name the software', async (t) => {
  const { port } = await startApp(t, undefined, { env: { CORS_ORIGIN: 'true' } })
  for (const [title, status, parts] of answers) {
    const answer = await send(port, compose(parts))
    t.equal(answer.status, status, title)
    t.equal(answer.headers.get('x-content-type-options'), 'nosniff', title)
    if (parts.headers === ranged) t.equal(answer.headers.get('accept-ranges'), 'none', title)
    for (const name of ['server', 'x-powered-by', 'via']) t.notOk(answer.headers.has(name), title)
    t.match(answer.headers.get('x-request-id'), made, title)
  }
})

test('keeps a connection open longer than load balancers do', async (t) => {
  const { app, port } = await startApp(t)
  t.equal(app.server.keepAliveTimeout, 72_000)
  for (const parts of [{}, { body: '{"name":"a","tag":""}' }]) {
    const { headers } = await send(port, compose(parts))
    t.equal(headers.get('connection'), 'keep-alive')
    t.equal(headers.get('keep-alive'), 'timeout=72, max=1000')
  }
  const { app: hasty, port: hastyPort } = await startApp(t, undefined, { env: { KEEP_ALIVE: '0' } })
  // Fastify would replace 0 with its default.
  t.equal(hasty.server.keepAliveTimeout, 1, 'KEEP_ALIVE=0 is not the default')
  const socket = connect(hastyPort, '127.0.0.1').resume()
  socket.write(compose())
  const startMs = performance.now()
  await once(socket, 'end')
  t.ok(performance.now() - startMs < 10_000, 'Node closes it a second later')
})

test('closes a connection with the response to its 1000th request', async (t) => {
  const { port } = await startApp(t)
  const socket = connect(port, '127.0.0.1')
  let received = ''
  socket.setEncoding('latin1').on('data', (chunk) => (received += chunk))
  const refused = compose({ target: '/%ff' }).toString()
  const bad = compose({ target: '/plants?limit=' }).toString()
  socket.write(refused + compose({ target: '/plants?limit=0' }).toString().repeat(998) + bad.repeat(2))
  await once(socket, 'end')
  const answers = readAnswers(received)
  t.equal(answers.length, 1000)
  t.equal(answers[0]?.status, 400)
  t.ok(answers.slice(1, -1).every(({ status }) => status === 200))
  t.equal(answers.at(-1)?.status, 400)
  t.equal(answers.at(-1)?.headers.get('connection'), 'close')
})

/** Starts an app; `close` ends it and resolves to the ids in its access log. */
async function startLogged(t: Test) {
  let lines = ''
  const write = (more: Uint8Array) => (lines += Buffer.from(more).toString())
  const { app, port, url } = await startApp(t, undefined, { write, mask })
  const close = async () => {
    await app.close()
    const whole = lines.trimEnd().split('\n')
    return whole.map((line) => JSON.parse(line).requestId)
  }
  return { port, url, close }
}

test('a well-formed X-Request-Id is sent back and logged', async (t) => {
  const { url, close } = await startLogged(t)
  const given = ['a', '0192f0c1-7a5e-7d2b-9c3e-5f6a7b8c9d0e', 'Root=1-6789-abcdef/~:+@._', 'x'.repeat(128)]
  for (const id of given) {
    const { headers } = await request(`${url}/plants`, { headers: { 'x-request-id': id } })
    t.equal(headers.get('x-request-id'), id)
  }
  t.same(await close(), given)
})

test('logs more lines than its buffer holds', async (t) => {
  const { port, close } = await startLogged(t)
  const one = compose({ target: `/plants?limit=0&${'x'.repeat(900)}` })
  await exchange(port, Buffer.concat(Array(500).fill(one)), 500)
  t.equal((await close()).length, 500)
})

const tokens = [
  'a-token-for-tests',
  `x:${makeToken().token}`,
  'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzZWNyZXQifQ.c2Vj',
]

test('a missing or malformed X-Request-Id, or one with a token, is replaced by a unique id', async (t) => {
  const { port, close } = await startLogged(t)
  const ids = new Set<string>()
  const given = [undefined, '', 'a b', 'a,b', 'ä', '"', '<a>', 'x'.repeat(129), ...tokens]
  for (const id of given) {
    const { headers } = await send(port, compose({ headers: { 'X-Request-Id': id } }))
    t.match(headers.get('x-request-id'), made, String(id))
    ids.add(String(headers.get('x-request-id')))
  }
  t.equal(ids.size, given.length)
  t.same(await close(), [...ids])
})

const origin = 'https://garden.test'

function askFirst(url: string, from: string) {
  const headers = {
    origin: from,
    authorization: '',
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-type',
  }
  return request(`${url}/plants`, { method: 'OPTIONS', headers })
}

test('a page of a listed origin can preflight, add, list and read all headers, also of errors', async (t) => {
  for (const named of [origin, `https://other.test, ${origin}`, 'true']) {
    const { url } = await startApp(t, undefined, { env: { CORS_ORIGIN: named } })
    const asked = await askFirst(url, origin)
    t.equal(asked.status, 204, named)
    t.equal(asked.headers.get('access-control-allow-origin'), origin)
    t.match(asked.headers.get('access-control-allow-methods'), /GET.*POST/)
    t.match(asked.headers.get('access-control-allow-headers'), /authorization,content-type/)
    t.equal(asked.headers.get('access-control-max-age'), '7200')
    const answers = [
      await request(`${url}/plants`, { body: { name: 'a', tag: '' }, headers: { origin } }),
      await request(`${url}/plants`, { headers: { origin } }),
      await request(`${url}/plants?limit=x`, { headers: { origin } }),
      await request(`${url}/plants`, { headers: { origin, authorization: '' } }),
      await request(`${url}/nothing`, { headers: { origin } }),
      await request(`${url}/openapi.yaml`, { headers: { origin } }),
    ]
    const statuses = answers.map(({ status }) => status)
    t.same(statuses, [200, 200, 400, 401, 404, 200])
    if (named !== origin)
      for (const n of [1, 5]) t.equal(answers[n]?.headers.get('vary'), 'Origin, Accept-Encoding')
    for (const { headers } of answers) {
      t.equal(headers.get('access-control-allow-origin'), origin)
      t.match(
        headers.get('access-control-expose-headers'),
        /ETag.*Link.*Retry-After.*WWW-Authenticate.*X-Request-Id/,
      )
    }
  }
})

test('without CORS_ORIGIN, and from an origin that is not listed, pages may read nothing', async (t) => {
  for (const named of ['', `${origin}, https://other.test`]) {
    const { url } = await startApp(t, undefined, { env: { CORS_ORIGIN: named } })
    const asked = await askFirst(url, 'https://evil.test')
    const answer = await request(`${url}/plants`, { headers: { origin: 'https://evil.test' } })
    if (named === '') assertProblem(t, asked, 405)
    for (const { headers } of [asked, answer]) t.equal(headers.get('access-control-allow-origin'), null)
  }
})
