// Headers that answers have whatever they answer: nothing is sniffed, nothing names the software, connections are kept.
import { connect } from 'node:net'
import { test } from 'tap'
import { startApp } from '../support/service.ts'
import { compose, type Parts, send, type WireAnswer } from '../support/wire.ts'

const open = { Authorization: undefined }
const preflight = { Origin: 'https://a.test', 'Access-Control-Request-Method': 'POST', ...open }

/** One of each kind of answer; a string is sent as it is. */
const answers: [title: string, status: number, parts: Parts | string][] = [
  ['a plant', 200, { body: '{"name":"a","tag":"b","id":1}' }],
  ['a list', 200, {}],
  ['the head of a list', 200, { method: 'HEAD' }],
  ['a list that the client has', 304, { headers: { 'If-None-Match': '*' } }],
  ['a preflight', 204, { method: 'OPTIONS', headers: preflight }],
  ['the home page', 200, { target: '/', headers: open }],
  ['the docs', 200, { target: '/docs', headers: open }],
  ['their head', 200, { target: '/docs', method: 'HEAD', headers: open }],
  ['a problem', 200, { target: '/problems/id-conflict', headers: open }],
  ['the contract', 200, { target: '/openapi.yaml', headers: open }],
  ['the contract as JSON', 200, { target: '/openapi.json', headers: open }],
  ['a bad request', 400, { target: '/plants?limit=x' }],
  ['a bad path', 400, { target: '/%ff' }],
  ['no token', 401, { headers: open }],
  ['an unknown path', 404, { target: '/x' }],
  ['another method', 405, { method: 'PUT' }],
  ['a conflict', 409, { body: '{"name":"c","tag":"b","id":1}' }],
  ['a large body', 413, { body: ' '.repeat(20_000) }],
  ['a long URL', 414, { target: `/${'x'.repeat(9000)}` }],
  ['another media type', 415, { body: '{}', headers: { 'Content-Type': 'text/plain' } }],
  ['large headers', 431, { headers: { 'X-Long': 'x'.repeat(20_000) } }],
  ['what is no HTTP', 400, 'hello\r\n\r\n'],
]

/** The head of an answer: there may be no body, or one in chunks. */
function readHead(port: number, bytes: string | Buffer): Promise<Pick<WireAnswer, 'status' | 'headers'>> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    let received = ''
    socket.setEncoding('latin1').on('data', (chunk) => {
      received += chunk
      const end = received.indexOf('\r\n\r\n')
      if (end === -1) return
      socket.destroy()
      const [first = '', ...lines] = received.slice(0, end).split('\r\n')
      const headers = new Headers(lines.map((line) => line.split(/:\s*(.*)/s, 2) as [string, string]))
      resolve({ status: Number(first.split(' ')[1]), headers })
    })
    socket.on('error', reject)
  })
}

test('no answer can be taken for another media type, or names the software', async (t) => {
  const { port } = await startApp(t, undefined, { env: { CORS_ORIGIN: 'true' } })
  for (const [title, status, parts] of answers) {
    const answer = await readHead(port, typeof parts === 'string' ? parts : compose(parts))
    t.equal(answer.status, status, title)
    t.equal(answer.headers.get('x-content-type-options'), 'nosniff', title)
    for (const name of ['server', 'x-powered-by', 'via']) t.notOk(answer.headers.has(name), title)
  }
})

test('what the docs page loads has the same headers', async (t) => {
  const { port } = await startApp(t)
  const { text } = await send(port, compose({ target: '/docs', headers: open }))
  const assets = new Set(text.match(/(?<=(?:src|href)=")[^"]*\/static\/[^"]+/g))
  t.ok(assets.size > 3)
  for (const target of assets) {
    const { status, headers } = await readHead(port, compose({ target, headers: open }))
    t.equal(status, 200, target)
    t.equal(headers.get('x-content-type-options'), 'nosniff', target)
  }
})

test('a request that does not come in time is answered with the same headers', async (t) => {
  const { app, port } = await startApp(t)
  app.server.headersTimeout = 100
  const { status, headers } = await readHead(port, 'GET /plants HTTP/1.1\r\nHost: a\r\n')
  t.equal(status, 408)
  t.equal(headers.get('x-content-type-options'), 'nosniff')
})

test('the docs page may load what is served with it, and nothing else', async (t) => {
  const { port } = await startApp(t)
  for (const method of ['GET', 'HEAD']) {
    const parts = { method, target: '/docs', headers: open }
    const { status, headers } = await readHead(port, compose(parts))
    const policy = String(headers.get('content-security-policy'))
    const rules = new Map(policy.split(';').map((rule) => rule.trim().split(/ (.*)/s, 2) as [string, string]))
    t.equal(status, 200)
    t.equal(rules.get('default-src'), "'none'", method)
    t.equal(rules.get('script-src'), "'self'")
    t.equal(rules.get('connect-src'), "'self'")
    t.equal(rules.get('frame-ancestors'), "'none'")
    t.notMatch(policy, /upgrade-insecure-requests|unsafe-eval|\*/)
  }
})

test('a connection is kept longer than load balancers keep theirs', async (t) => {
  const { app, port } = await startApp(t)
  t.equal(app.server.keepAliveTimeout, 72_000)
  for (const parts of [{}, { body: '{"name":"a","tag":""}' }]) {
    const { headers } = await send(port, compose(parts))
    t.equal(headers.get('connection'), 'keep-alive')
    t.equal(headers.get('keep-alive'), 'timeout=72')
  }
})
