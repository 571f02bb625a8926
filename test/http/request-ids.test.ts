// Every answer names its request, and the log calls the request by the same name.
import { type Test, test } from 'tap'
import type { Exchange } from '../../src/http/connection/exchange.ts'
import { sqlite } from '../support/engines.ts'
import { request, startApp } from '../support/service.ts'
import { compose, send } from '../support/wire.ts'

const made = /^[0-9a-f]{10}-[0-9a-z]+$/

async function start(t: Test) {
  const reported: Exchange[] = []
  const report = (access: Exchange) => void reported.push(access)
  const { port, url } = await startApp(t, await sqlite.createDatabase(t), { report })
  return { port, url, reported }
}

test('a well-formed X-Request-Id is taken, sent back and reported', async (t) => {
  const { url, reported } = await start(t)
  const given = [
    'a',
    '0192f0c1-7a5e-7d2b-9c3e-5f6a7b8c9d0e',
    'Root=1-67891233-abcdef/~:+@._',
    'x'.repeat(128),
  ]
  for (const id of given) {
    const { headers } = await request(`${url}/plants`, { headers: { 'x-request-id': id } })
    t.equal(headers.get('x-request-id'), id)
    t.equal(reported.at(-1)?.requestId, id)
  }
})

test('without a well-formed one an id is made, and each is unique', async (t) => {
  const { port, reported } = await start(t)
  const ids = new Set<string>()
  const given = [undefined, '', ' ', 'a b', 'a,b', 'ä', '"', '\\', '<a>', 'x'.repeat(129)]
  for (const id of given) {
    const { headers } = await send(port, compose({ headers: { 'X-Request-Id': id } }))
    const own = headers.get('x-request-id') as string
    t.match(own, made, String(id))
    t.equal(reported.at(-1)?.requestId, own)
    ids.add(own)
  }
  const twice = compose({ headers: { 'X-Request-Id': 'a\r\nX-Request-Id: b' } })
  ids.add((await send(port, twice)).headers.get('x-request-id') as string)
  t.equal(ids.size, given.length + 1)
})

test('every answer has the id of its request', async (t) => {
  const { port } = await start(t)
  const answers: [status: number, bytes: string | Buffer][] = [
    [200, compose({ body: '{"name":"a","tag":"b"}' })],
    [304, compose({ headers: { 'If-None-Match': '*' } })],
    [204, compose({ method: 'OPTIONS' })],
    [302, compose({ target: '/' })],
    [200, compose({ target: '/openapi.yaml' })],
    [400, compose({ target: '/%ff' })],
    [401, compose({ headers: { Authorization: undefined } })],
    [404, compose({ target: '/nothing' })],
    [414, compose({ target: `/${'x'.repeat(9000)}` })],
    [431, compose({ headers: { 'X-Long': 'x'.repeat(20_000) } })],
    [400, 'garbage\r\n\r\n'],
    [404, 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'],
  ]
  for (const [status, bytes] of answers) {
    const answer = await send(port, bytes)
    t.equal(answer.status, status)
    t.match(answer.headers.get('x-request-id'), made, String(status))
  }
  const tunnel = 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n'
  t.equal((await send(port, tunnel)).headers.get('x-request-id'), 'mine')
})

test('a valid traceparent gives the ids of trace and parent span; any other is ignored', async (t) => {
  const { url, reported } = await start(t)
  const trace = '0af7651916cd43dd8448eb211c80319c'
  const span = 'b7ad6b7169203331'
  const cases: [traceparent: string, isValid: boolean][] = [
    [`00-${trace}-${span}-01`, true],
    [`00-${trace}-${span}-00`, true],
    [`cc-${trace}-${span}-01-what-comes-later`, true],
    [`cc-${trace}-${span}-01.`, false],
    [`00-${trace}-${span}-01-more`, false],
    [`ff-${trace}-${span}-01`, false],
    [`00-${'0'.repeat(32)}-${span}-01`, false],
    [`00-${trace}-${'0'.repeat(16)}-01`, false],
    [`00-${trace.toUpperCase()}-${span}-01`, false],
    [`00-${trace}-${span}`, false],
    [`00-${trace}-${span}-01, 00-${trace}-${span}-01`, false],
    ['x', false],
  ]
  await request(`${url}/plants`)
  t.equal(reported.at(-1)?.trace, undefined)
  for (const [traceparent, isValid] of cases) {
    await request(`${url}/plants`, { headers: { traceparent } })
    const flags = Number(`0x${traceparent.slice(53, 55)}`)
    const read = isValid ? { traceId: trace, spanId: span, flags } : undefined
    t.strictSame(reported.at(-1)?.trace, read, traceparent)
  }
})
