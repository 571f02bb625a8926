// Every answer of the app names its request, and the log calls the request by the same name.
import { type Test, test } from 'tap'
import { makeMask } from '../../src/log.ts'
import { makeToken } from '../../src/tokens/format.ts'
import { request, startApp } from '../support/service.ts'
import { compose, send } from '../support/wire.ts'

const mask = makeMask(['a-token-for-tests'])
const made = /^[0-9a-f]{10}-[0-9a-z]+$/

/** Starts an app; `close` ends it and resolves to the ids in its access log. */
async function start(t: Test) {
  let lines = ''
  const write = (more: string) => {
    lines += more
  }
  const { app, port, url } = await startApp(t, undefined, { write, mask })
  const close = async () => {
    await app.close()
    return lines
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).requestId)
  }
  return { port, url, close }
}

test('a well-formed X-Request-Id is kept, sent back and logged', async (t) => {
  const { url, close } = await start(t)
  const given = [
    'a',
    '0192f0c1-7a5e-7d2b-9c3e-5f6a7b8c9d0e',
    'Root=1-67891233-abcdef/~:+@._',
    'x'.repeat(128),
  ]
  for (const id of given) {
    const { headers } = await request(`${url}/plants`, { headers: { 'x-request-id': id } })
    t.equal(headers.get('x-request-id'), id)
  }
  t.same(await close(), given)
})

test('without a well-formed one an id is made, and each is unique', async (t) => {
  const { port, close } = await start(t)
  const ids = new Set<string>()
  const given = [undefined, '', ' ', 'a b', 'a,b', 'ä', '"', '\\', '<a>', 'x'.repeat(129)]
  for (const id of given) {
    const { headers } = await send(port, compose({ headers: { 'X-Request-Id': id } }))
    t.match(headers.get('x-request-id'), made, String(id))
    ids.add(String(headers.get('x-request-id')))
  }
  t.equal(ids.size, given.length)
  t.same(await close(), [...ids])
})

test('a token is no id, as ids are logged', async (t) => {
  const { url, close } = await start(t)
  const given = [
    'a-token-for-tests',
    `x:${makeToken().token}`,
    'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzZWNyZXQifQ.c2Vj',
  ]
  for (const id of given) {
    const { headers } = await request(`${url}/plants`, { headers: { 'x-request-id': id } })
    t.match(headers.get('x-request-id'), made)
  }
  for (const id of await close()) t.match(id, made)
})

test('every kind of answer has the id of its request', async (t) => {
  const { port } = await start(t)
  const answers: [status: number, bytes: Buffer][] = [
    [200, compose({ body: '{"name":"a","tag":"b"}' })],
    [304, compose({ headers: { 'If-None-Match': '*' } })],
    [200, compose({ target: '/openapi.yaml' })],
    [401, compose({ headers: { Authorization: undefined } })],
    [404, compose({ target: '/nothing' })],
    [405, compose({ method: 'PUT' })],
    [414, compose({ target: `/${'x'.repeat(9000)}` })],
  ]
  for (const [status, bytes] of answers) {
    const answer = await send(port, bytes)
    t.equal(answer.status, status)
    t.match(answer.headers.get('x-request-id'), made, String(status))
  }
})
