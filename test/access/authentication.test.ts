// Tokens of the environment and of the store: their scopes, their expiry and revocation, and the refusals.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { makeToken } from '../../src/tokens/format.ts'
import { scopes } from '../../src/tokens/tokens.ts'
import { createDirectory, engines } from '../support/engines.ts'
import { assertProblem } from '../support/problem.ts'
import { request, token } from '../support/service.ts'
import { until } from '../support/until.ts'
import { compose as composeParts, exchange, send } from '../support/wire.ts'
import { ask, idOf, plant, start } from './start.ts'

const challenge = (answer: { headers: Headers }) => answer.headers.get('www-authenticate')

/** The bytes of a request. */
const compose = (Authorization: string | undefined, body?: string, more: Record<string, string> = {}) =>
  composeParts({ headers: { Authorization, ...more }, ...(body !== undefined && { body }) })

/** Opens a connection. `answer` resolves to the next bytes that it receives. */
function open(t: Test, port: number) {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1')
  t.teardown(() => socket.destroy())
  const answer = async () => String(await once(socket, 'data'))
  return { answer, send: (bytes: string | Buffer) => socket.write(bytes) }
}

/** The status of a request on a new connection. */
const sendOnce = async (port: number, authorization: string | undefined) =>
  (await send(port, compose(authorization))).status

for (const engine of engines) {
  test(`${engine.name}: a token allows only what its scopes permit`, async (t) => {
    const { url, create, list, add } = await start(t, { database: await engine.createDatabase(t) })
    const reader = await create({ name: 'reader', scopes: ['plants:read'] })
    const writer = await create({ name: 'writer', scopes: ['plants:write'] })
    const both = await create({ name: 'both' })
    for (const [text, read, write] of [
      [reader, 200, 403],
      [writer, 403, 200],
      [both, 200, 200],
      [token, 200, 200],
    ] as const) {
      const answers = [await list(text), await add(text)] as const
      const statuses = answers.map(({ status }) => status)
      t.same(statuses, [read, write])
      answers.forEach((answer, index) => {
        if (answer.status !== 403) return
        assertProblem(t, answer, 403)
        const error = `error="insufficient_scope", scope="${scopes[index]}"`
        t.equal(challenge(answer), `Bearer realm="plant-store", ${error}`)
      })
    }
    const headers = { authorization: `Bearer ${writer}` }
    t.equal((await request(`${url}/plants`, { method: 'HEAD', headers })).status, 403)
  })

  test(`${engine.name}: refuses expired, revoked and altered tokens`, async (t) => {
    const { create, list, revoke } = await start(t, { database: await engine.createDatabase(t) })
    const expired = await create({ name: 'a', expiresAt: Date.now() - 1 })
    const revoked = await create({ name: 'b' })
    const valid = await create({ name: 'c', expiresAt: Date.now() + 60_000 })
    await revoke(revoked)
    const others = [`${valid}x`, valid.toUpperCase(), makeToken(idOf(valid)).token, makeToken().token]
    for (const text of [expired, revoked, ...others]) {
      const answer = await list(text)
      assertProblem(t, answer, 401)
      t.equal(challenge(answer), 'Bearer realm="plant-store", error="invalid_token"')
    }
    t.equal((await list(valid)).status, 200)
  })

  test(`${engine.name}: within 5 seconds every replica refuses a revoked token, even while a body is arriving`, async (t) => {
    const database = await engine.createDatabase(t)
    const [one, other] = [await start(t, { database }), await start(t, { database })]
    const text = await one.create({ name: 'a' })
    const bytes = compose(`Bearer ${text}`, JSON.stringify(plant))
    const { send, answer } = open(t, other.port)
    send(bytes)
    t.match(await answer(), '200 OK')
    t.equal((await one.list(text)).status, 200)
    send(bytes.subarray(0, -1))
    await one.revoke(text)
    const revokedMs = performance.now()
    await until(async () => {
      return (await Promise.all([one.list(text), other.list(text)])).every(({ status }) => status === 401)
    })
    t.ok(performance.now() - revokedMs < 5000)
    send(bytes.subarray(-1))
    t.match(await answer(), '401 Unauthorized')
    t.equal((await one.list(token)).text, JSON.stringify([plant]))
  })
}

test('the challenge has an error code only if bearer credentials were sent', async (t) => {
  const { port } = await start(t)
  for (const [authorization, error] of [
    [undefined, ''],
    ['', ''],
    ['Basic YTpi', ''],
    [token, ''],
    ['Bearer', ', error="invalid_token"'],
    ['Bearer ', ', error="invalid_token"'],
    ['Bearer x', ', error="invalid_token"'],
  ] as const) {
    const answer = await send(port, composeParts({ headers: { Authorization: authorization } }))
    assertProblem(t, answer, 401)
    t.equal(challenge(answer), `Bearer realm="plant-store"${error}`)
  }
})

test('the scheme is case-insensitive, and ACCESS_TOKENS may contain any character but a comma', async (t) => {
  const tokens = ['plain', 'with space', 'p@$$:w0rd=="', 'ключ', 'Р', 'correct-horse-battery-staple']
  const { port } = await start(t, { env: { ACCESS_TOKENS: tokens.join(' , ') } })
  for (const text of tokens) {
    t.equal(await sendOnce(port, `BEARER ${text}`), 200, text)
    t.equal(await sendOnce(port, `bearer ${text}`), 200, text)
  }
  for (const text of ['plain,with space', 'Plain', 'plai', 'plainx', ',', 'ключ '.repeat(2), tokens.join()])
    t.equal(await sendOnce(port, `Bearer ${text}`), 401, text)
})

test('401 and 403 are sent before the body is read', async (t) => {
  const { port, create, list } = await start(t)
  const reader = await create({ name: 'reader', scopes: ['plants:read'] })
  for (const more of [{}, { Expect: '100-continue' }] as Record<string, string>[])
    for (const [text, status] of [
      ['no', 401],
      [makeToken().token, 401],
      [reader, 403],
    ] as const) {
      const { send, answer } = open(t, port)
      // The body is never sent; an interim response that asks for it would arrive first.
      send(compose(`Bearer ${text}`, '', { 'Content-Length': '10000', ...more }))
      t.ok((await answer()).startsWith(`HTTP/1.1 ${status} `))
    }
  t.equal((await list(token)).text, '[]')
})

test('100 Continue is sent once the token is verified', async (t) => {
  const { port } = await start(t)
  const body = JSON.stringify(plant).padEnd(16 * 1024)
  const { send, answer } = open(t, port)
  send(compose(`Bearer ${token}`, body, { Expect: '100-continue' }).subarray(0, -body.length))
  t.match(await answer(), 'HTTP/1.1 100 Continue')
  send(body)
  t.match(await answer(), 'HTTP/1.1 200 OK')
})

test('keeps the connection after an error that follows 100 Continue', async (t) => {
  const { port } = await start(t)
  const bytes = compose(`Bearer ${token}`, '{', { Expect: '100-continue' })
  const answers = await exchange(port, Buffer.concat([bytes, compose(`Bearer ${token}`, '{')]), 3)
  const statuses = answers.map(({ status }) => status)
  t.strictSame(statuses, [100, 400, 400])
})

test('100 Continue is not sent for a body that is too large', async (t) => {
  const { port } = await start(t)
  const { send, answer } = open(t, port)
  send(compose(`Bearer ${token}`, '', { 'Content-Length': '20000', Expect: '100-continue' }))
  // The client may send its next request instead of the body.
  t.match(await answer(), /^HTTP\/1.1 413 .*\r\nconnection: close\r\n/is)
})

test('a failing store makes no token valid, and reveals its error to no client', async (t) => {
  for (const [error, status, type] of [
    [new Error('secret'), 500, 'about:blank'],
    [new StoreUnavailable('overloaded', 'secret'), 503, '/problems/overloaded'],
    [new StoreUnavailable('unread', 'secret'), 503, '/problems/unread'],
  ] as const) {
    const find = () => Promise.reject(error)
    const { list } = await start(t, { change: (store) => ({ tokens: { ...store.tokens, find } }) })
    const answer = await list(makeToken().token)
    t.equal(assertProblem(t, answer, status).type, type)
    t.notMatch(answer.text, 'secret')
    t.equal((await list(token)).status, 200)
  }
})

test('the store contains the hash of a token, not the token', async (t) => {
  const directory = createDirectory(t)
  const { url, create } = await start(t, { database: `file:${join(directory, 'plants.db')}` })
  const text = await create({ name: 'a' })
  t.equal((await ask(`${url}/plants`, text)).status, 200)
  const files = readdirSync(directory).map((name) => readFileSync(join(directory, name)))
  const content = Buffer.concat(files).toString('latin1')
  t.ok(content.includes(createHash('sha256').update(text).digest('hex')))
  t.ok(content.includes(idOf(text)))
  t.notOk(content.includes(text.slice(15, 47)))
})
