// The keys of an issuer: where they are fetched from, how often, and what happens while the issuer fails.
import type { RequestListener, ServerResponse } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { noMeter } from '../../src/metrics.ts'
import { describeFailure } from '../../src/outage.ts'
import { makeJwtVerifier } from '../../src/tokens/issued-tokens.ts'
import { cacheKeys } from '../../src/tokens/issuer-keys.ts'
import { createDirectory } from '../support/engines.ts'
import { startService } from '../support/service.ts'
import { collectLines, silent } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { listen } from '../support/wire.ts'
import { audience, issuerIn, startAccepting, startIssuer, startSigning } from './issuer.ts'
import { callers } from './start.ts'

const keysOf = (env: NodeJS.ProcessEnv, options = {}) =>
  cacheKeys(issuerIn(env), { logger: silent, ...options })
const fail: RequestListener = (_request, response) => void response.writeHead(500).end()

const after = (reply: (socket: Socket) => void) => (socket: Socket) =>
  void socket.once('data', () => reply(socket))
const answer = (text: string) => after((socket) => void socket.end(text.replaceAll('\n', '\r\n')))
const succeed = (body: unknown) => answer(`HTTP/1.1 200 OK\n\n${body}`)

/** Behaviours of the server at the URL of an issuer. */
const failures: [title: string, reason: RegExp, serve: (socket: Socket) => void][] = [
  ['never answers', /did not send its keys within 4 s$/, () => {}],
  ['ends within a body', /aborted|hang up/, answer('HTTP/1.1 200 OK\nContent-Length: 100\n\n{"issuer"')],
  [
    'sends a byte at a time',
    /did not send its keys within 4 s$/,
    after((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      const timer = setInterval(() => socket.write(' '), 20)
      socket.once('close', () => clearInterval(timer))
    }),
  ],
  ['does not speak HTTP', /Parse Error/, answer('220 mail.example ESMTP\n')],
  ['switches protocols', /./, answer('HTTP/1.1 101 Switching\nUpgrade: x\nConnection: upgrade\n\n')],
  ['redirects', /returned 302$/, answer('HTTP/1.1 302 Found\nLocation: /elsewhere\nContent-Length: 0\n\n')],
  ['answers with HTML', /does not contain a JSON object$/, succeed('<html>')],
  ['answers with null', /does not contain a JSON object$/, succeed(null)],
  ['names another issuer', /names another issuer$/, succeed('{}')],
  [
    'names keys on plain HTTP',
    /has no jwks_uri with https$/,
    (socket) => {
      const document = { issuer: `http://127.0.0.1:${socket.localPort}`, jwks_uri: 'http://keys.example/' }
      succeed(JSON.stringify(document))(socket)
    },
  ],
  ['answers with too many bytes', /is longer than \d+ bytes$/, succeed(`{"pad":"${'x'.repeat(300_000)}"}`)],
]

test('refuses tokens with 503 whatever a failing issuer does, and logs the reason once', async (t) => {
  const fail = async ([title, reason, serve]: (typeof failures)[number]) => {
    const { lines, logger } = collectLines()
    const OIDC_ISSUER = `http://127.0.0.1:${await listen(t, createServer(serve))}`
    const keys = keysOf({ OIDC_ISSUER, OIDC_AUDIENCE: audience }, { logger, limitMs: 4000, pauseMs: 1 })
    for (let n = 0; n < 2; n++) t.equal(await keys.verify({ alg: 'ES256' }, `${n}`), 'unavailable', title)
    t.equal(lines.length, 1)
    t.match(lines[0]?.reason, reason, title)
  }
  await Promise.all(failures.map(fail))
})

test('describes a failure, whatever value was thrown', async (t) => {
  const aborted = new DOMException('Request was cancelled.')
  t.type(aborted.code, 'number')
  for (const [error, words] of [
    [new TypeError('fetch failed', { cause: aborted }), 'fetch failed: Request was cancelled.'],
    [Object.assign(new Error(''), { code: 'ECONNRESET' }), 'ECONNRESET'],
    [new AggregateError([new Error('connect ECONNREFUSED ::1:1')]), 'connect ECONNREFUSED ::1:1'],
    [Object.assign(new Error('a'), { cause: 'b' }), 'a'],
    [{ message: 7, code: null, cause: {} }, 'unknown error'],
    [new Error('x'.repeat(1000)), 'x'.repeat(500)],
    [new Error('Header name must be valid ["authorization: Basic aGk"]'), 'Header name must be valid'],
  ] as const)
    t.equal(describeFailure(error), words)
})

test('a proxy that refuses or breaks a connection does not crash the service', async (t) => {
  const { sign } = await (await startIssuer(t)).makeSigner('one')
  const iss = 'https://issuer.example'
  const tokens = await Promise.all(['a', 'b', 'c', 'd'].map((kid) => sign({ iss }, { kid })))
  const refuse = async (head: string, reason: RegExp) => {
    let connections = 0
    const server = createServer(answer(head)).on('connection', () => connections++)
    const HTTPS_PROXY = `http://127.0.0.1:${await listen(t, server)}`
    const env = { OIDC_ISSUER: iss, OIDC_AUDIENCE: audience, NODE_USE_ENV_PROXY: '1', HTTPS_PROXY }
    const { url, logs } = await startService(t, env, createDirectory(t))
    const { list } = callers(url)
    t.match(JSON.parse(await logs(/^(.*cannot be loaded.*)\n/m)).reason, reason, head)
    for (const token of tokens) t.equal((await list(token)).status, 503, head)
    t.ok(connections <= 4, `${connections} connections: two loads of two documents`)
  }
  await Promise.all([
    refuse('HTTP/1.1 407 Proxy Authentication Required\nContent-Length: 0\n\n', /407|aborted|within 2 s/),
    refuse('HTTP/1.1 200 O', /./),
  ])
})

test('keys are found by discovery, with or without a trailing slash, or at OIDC_JWKS_URL', async (t) => {
  for (const path of ['/realm/', '/', ''])
    for (const [place, fetches] of [
      [undefined, 2],
      ['/other/keys', 1],
    ] as const) {
      const { issuer, sign } = await startSigning(t, path)
      const env = place && { OIDC_JWKS_URL: `http://127.0.0.1:${issuer.port}${place}` }
      const keys = keysOf({ ...issuer.env, ...env }, { limitMs: 20_000 })
      t.equal(await keys.verify({ alg: 'ES256', kid: 'one' }, await sign()), 'valid', `${path}: ${place}`)
      t.equal(issuer.fetches, fetches)
    }
})

test('weak, malformed and symmetric keys, and keys for encryption, verify nothing', async (t) => {
  const issuer = await startIssuer(t)
  const [good, rsa] = [await issuer.makeSigner('good'), await issuer.makeSigner('rsa', 'RS256')]
  const many = Array.from({ length: 1000 }, (_, n) => ({ ...good.jwk, kid: `${n}` }))
  issuer.publish(
    good.jwk,
    { ...rsa.jwk, kid: 'small', n: rsa.jwk.n?.slice(0, 171) },
    { kty: 'RSA', kid: { toString: 1 }, e: 'AQAB' },
    7,
    null,
    [],
    { ...good.jwk, kid: 'short', x: 'AA' },
    { ...good.jwk, kid: 'private', d: good.jwk.x },
    { kty: 'oct', k: 'AAAA', kid: 'symmetric' },
    { ...good.jwk, kid: 'for encryption', use: 'enc' },
    ...many,
  )
  const { list } = await startAccepting(t, issuer.env)
  await until(async () => (await list(await good.sign())).status === 200)
  for (const kid of ['small', 'short', 'symmetric', 'for encryption', '999']) {
    const token = await (kid === 'small' ? rsa : good).sign({}, { kid })
    await until(async () => (await list(token)).status === 401)
  }
})

test('accepts a valid token after a key rotation despite tokens with unknown keys', async (t) => {
  const { issuer, sign } = await startSigning(t)
  const two = await issuer.makeSigner('two')
  const { list } = await startAccepting(t, issuer.env)
  await until(async () => (await list(await sign())).status === 200)
  for (let round = 0; round < 3; round++) {
    for (const n of [1, 2]) t.not((await list(await two.sign({}, { kid: `${round} ${n}` }))).status, 200)
    const next = await issuer.makeSigner(`next ${round}`)
    issuer.publish(next.jwk)
    const token = await next.sign()
    const statuses = new Set<number>()
    await until(async () => {
      const { status, headers, text } = await list(token)
      statuses.add(status)
      if (status === 503) {
        t.match(text, 'problems/unread')
        t.match(headers.get('retry-after'), /^[1-9]$/)
      }
      return status === 200
    })
    statuses.delete(503)
    t.same([...statuses], [200])
  }
})

test('while the issuer hangs, tokens with a known key are accepted, and the others get 503', async (t) => {
  const { issuer, sign, jwk } = await startSigning(t)
  const two = await issuer.makeSigner('two')
  const { list, told } = await startAccepting(t, issuer.env)
  await until(async () => (await list(await sign())).status === 200)
  const before = told().length
  let hanging = 0
  issuer.answer(() => void hanging++)
  const unknown = await Promise.all(Array.from({ length: 260 }, (_, n) => two.sign({}, { kid: `${n}` })))
  await until(async () => {
    if (hanging === 0) void list(await two.sign({ jti: `${Math.random()}` }))
    return hanging > 0
  })
  const answers = unknown.map((token) => list(token))
  t.equal((await list(await sign({ jti: 'new' }))).status, 200)
  const all = await Promise.all(answers)
  t.ok(all.every(({ status }) => status === 503))
  t.ok(all.some(({ text }) => text.includes('problems/unread')))
  await until(() => told().length > before)
  t.equal(told().length, before + 1)
  issuer.answer(undefined)
  issuer.publish(jwk, two.jwk)
  await until(async () => (await list(await two.sign({ jti: 'later' }))).status === 200)
})

test('refuses a token that expires while the keys are loaded', async (t) => {
  const { issuer, sign, jwk } = await startSigning(t)
  const token = await sign()
  issuer.answer((_request, response) => {
    t.intercept(Date, 'now', { value: () => 1e13 })
    response.end(JSON.stringify({ keys: [jwk] }))
  })
  const env = { ...issuer.env, OIDC_JWKS_URL: issuer.url }
  const verify = makeJwtVerifier(issuerIn(env), { logger: silent, meter: noMeter })
  t.equal(await verify(token), undefined)
})

test('refuses a token with 503 overloaded if 250 others wait for keys, and counts only waiting ones', async (t) => {
  const issuer = await startIssuer(t)
  issuer.answer(() => {})
  const keys = keysOf(issuer.env, { limitMs: 200, pauseMs: 1 })
  for (let round = 0; round < 3; round++) {
    const waits = Array.from({ length: 251 }, (_, n) => keys.verify({ alg: 'ES256' }, `${n}`))
    const settled = await Promise.allSettled(waits)
    t.match(settled.at(-1), { status: 'rejected', reason: { outcome: 'overloaded' } })
    t.match(settled[0], { status: 'fulfilled', value: 'unavailable' })
  }
})

test('keys are used for 24 hours after they were last loaded', async (t) => {
  const { issuer, sign, jwk } = await startSigning(t)
  const { lines, logger } = collectLines()
  const [freshMs, staleMs] = [300_000, 86_400_000]
  let nowMs = 0
  const keys = keysOf(issuer.env, { logger, now: () => nowMs, limitMs: 20_000 })
  const token = await sign()
  const verify = () => keys.verify({ alg: 'ES256', kid: 'one' }, token)
  t.equal(await verify(), 'valid')
  t.equal(keys.retryMs(), 5000, 'an unknown key does not reload the keys at once')
  nowMs = freshMs - 1
  t.equal(await verify(), 'valid')
  t.equal(issuer.fetches, 2)
  nowMs = freshMs + 1
  issuer.publish()
  const both = await Promise.all([verify(), verify()])
  t.same(both, ['key', 'key'], 'old keys are reloaded first: the issuer may have withdrawn one')
  issuer.publish(jwk)
  nowMs += 5000
  t.equal(await verify(), 'valid')
  issuer.answer(fail)
  nowMs += staleMs - 1
  t.equal(await verify(), 'valid')
  const hanging = new Promise<ServerResponse>((resolve) => issuer.answer((_, response) => resolve(response)))
  t.equal(await verify(), 'valid')
  const first = await Promise.race([keys.load(), setImmediate('pending')])
  t.equal(first, 'pending', 'a later load delays nothing')
  const response = await hanging
  response.destroy()
  await keys.load()
  nowMs += 5001
  for (let n = 0; n < 3; n++) t.equal(await verify(), 'unavailable')
  issuer.answer(undefined)
  nowMs += 5000
  t.equal(await verify(), 'valid')
  t.match(lines, [{ msg: /cannot be loaded/ }, { msg: /loaded again/ }])
})

test('a replaced key with the same id, or without one, verifies tokens after the next load', async (t) => {
  for (const kid of ['one', undefined]) {
    const issuer = await startIssuer(t)
    let nowMs = 0
    const keys = keysOf(issuer.env, { now: () => nowMs, limitMs: 20_000 })
    for (let round = 0; round < 2; round++) {
      const { sign, jwk } = await issuer.makeSigner('one')
      issuer.publish({ ...jwk, kid })
      nowMs += 5000
      const token = await sign({}, { kid })
      const verify = () => keys.verify({ alg: 'ES256', ...(kid && { kid }) }, token)
      if (round > 0) t.equal(await verify(), 'signature')
      await keys.load()
      t.equal(await verify(), 'valid')
    }
  }
})

test('loads keys from a failing issuer at most twice within two pauses, then retries', async (t) => {
  const issuer = await startIssuer(t)
  issuer.answer(fail)
  let nowMs = 0
  const env = { ...issuer.env, OIDC_JWKS_URL: `${issuer.url}/keys` }
  const keys = keysOf(env, { now: () => nowMs, pauseMs: 100 })
  for (const fetches of [1, 2]) {
    await keys.load()
    t.equal(issuer.fetches, fetches)
  }
  nowMs += 199
  await keys.load()
  t.equal(issuer.fetches, 2, 'not a third time')
  nowMs++
  await keys.load()
  t.equal(issuer.fetches, 3)
})

test('a start does not wait for the issuer, and creates no first token', async (t) => {
  const issuer = await startIssuer(t)
  issuer.answer(fail)
  const { url, output } = await startService(t, { ...issuer.env, ACCESS_TOKENS: '' }, createDirectory(t))
  t.notMatch(output().stdout, 'plant_')
  const early = await callers(url).list(await (await issuer.makeSigner('one')).sign())
  t.match(early, { status: 503, text: '/problems/unread' })
  t.match(early.headers.get('retry-after'), /^([2-9]|10)$/, 'the rest of two pauses')
  t.notMatch(output().stderr, '"level":50')
})
