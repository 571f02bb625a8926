// The keys of an issuer: where they are looked for, how often, and what happens while the issuer fails.
import type { RequestListener, ServerResponse } from 'node:http'
import { createServer, type Socket } from 'node:net'
import pino from 'pino'
import { test } from 'tap'
import { loadSettings } from '../../src/settings.ts'
import { type Issuer, issuerOf } from '../../src/tokens/issuer.ts'
import { cacheKeys } from '../../src/tokens/issuer-keys.ts'
import { describeFailure } from '../../src/tokens/load-keys.ts'
import { silent } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { listen } from '../support/wire.ts'
import { audience, short, spawnAccepting, startAccepting, startIssuer } from './issuer.ts'

const issuerIn = (env: NodeJS.ProcessEnv) => issuerOf(loadSettings({}, env).settings) as Issuer
const keysOf = (env: NodeJS.ProcessEnv, options = {}) =>
  cacheKeys(issuerIn(env), { logger: silent, ...options })
const json = (response: ServerResponse, value: unknown) => void response.end(JSON.stringify(value))
const fail: RequestListener = (_request, response) => void response.writeHead(500).end()

const after = (reply: (socket: Socket) => void) => (socket: Socket) =>
  void socket.once('data', () => reply(socket))
const answer = (text: string) => after((socket) => void socket.end(text.replaceAll('\n', '\r\n')))

/** What may be at the address of an issuer. */
const failures: [title: string, reason: RegExp, serve: (socket: Socket) => void][] = [
  ['resets the connection', /ECONNRESET|hang up/, after((socket) => void socket.resetAndDestroy())],
  ['says nothing', /did not send its keys within 4 s$/, () => {}],
  ['ends in mid-body', /aborted|hang up/, answer('HTTP/1.1 200 OK\nContent-Length: 100\n\n{"issuer"')],
  [
    'resets in mid-body',
    /aborted|ECONNRESET|did not send/,
    after((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{', () => socket.resetAndDestroy())
    }),
  ],
  [
    'trickles',
    /did not send its keys within 4 s$/,
    after((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      const timer = setInterval(() => socket.write(' '), 20)
      socket.once('close', () => clearInterval(timer))
    }),
  ],
  ['is no HTTP', /Parse Error/, answer('220 mail.example ESMTP\n')],
  [
    'switches protocols',
    /./,
    answer('HTTP/1.1 101 Switching Protocols\nUpgrade: x\nConnection: upgrade\n\n'),
  ],
  ['redirects', /answered 302$/, answer('HTTP/1.1 302 Found\nLocation: /elsewhere\nContent-Length: 0\n\n')],
  ['fails', /answered 503$/, answer('HTTP/1.1 503 Unavailable\nContent-Length: 0\n\n')],
  ['has no JSON', /does not contain a JSON object$/, answer('HTTP/1.1 200 OK\nContent-Length: 6\n\n<html>')],
  ['has null', /does not contain a JSON object$/, answer('HTTP/1.1 200 OK\nContent-Length: 4\n\nnull')],
  ['is another issuer', /names another issuer$/, answer('HTTP/1.1 200 OK\nContent-Length: 2\n\n{}')],
  [
    'has too much',
    /is longer than \d+ bytes$/,
    answer(`HTTP/1.1 200 OK\n\n${JSON.stringify({ pad: 'x'.repeat(300_000) })}`),
  ],
]

/** A logger, and the lines that it is told. */
function collect() {
  const lines: { msg: string; reason: string }[] = []
  return { lines, logger: pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) }) }
}

test('whatever the issuer answers, its tokens are 503, and the log says why in words', async (t) => {
  const fail = async ([title, reason, serve]: (typeof failures)[number]) => {
    const { lines, logger } = collect()
    const OIDC_ISSUER = `http://127.0.0.1:${await listen(t, createServer(serve))}`
    const keys = keysOf({ OIDC_ISSUER, OIDC_AUDIENCE: audience }, { logger, limitMs: 4000, pauseMs: 1 })
    for (let n = 0; n < 2; n++) t.equal(await keys.find({ alg: 'ES256' }, `${n}`), 'unavailable', title)
    t.equal(lines.length, 1)
    t.match(lines[0]?.reason, reason, title)
  }
  await Promise.all(failures.map(fail))
})

test('a port where nobody listens, and a name that does not exist, are told in words', async (t) => {
  for (const [OIDC_ISSUER, reason] of [
    ['http://127.0.0.1:1', /^connect ECONNREFUSED 127\.0\.0\.1:1$/],
    ['https://issuer.invalid', /issuer\.invalid|did not send its keys within 0\.5 s$/],
  ] as const) {
    const { lines, logger } = collect()
    await keysOf({ OIDC_ISSUER, OIDC_AUDIENCE: audience }, { logger, limitMs: 500 }).load()
    t.match(lines, [{ reason }])
  }
})

test('a failure is described in words, whatever was thrown', (t) => {
  const aborted = new DOMException('Request was cancelled.')
  t.type(aborted.code, 'number')
  for (const [error, words] of [
    [new TypeError('fetch failed', { cause: aborted }), 'fetch failed: Request was cancelled.'],
    [Object.assign(new Error(''), { code: 'ECONNRESET' }), 'ECONNRESET'],
    [Object.assign(new Error(''), { code: 407 }), 'unknown error'],
    [new AggregateError([new Error('connect ECONNREFUSED ::1:1')]), 'connect ECONNREFUSED ::1:1'],
    [Object.assign(new Error('a'), { cause: 'b' }), 'a'],
    [undefined, 'unknown error'],
    ['text', 'unknown error'],
    [{ message: 7, code: null, cause: {} }, 'unknown error'],
    [new Error('x'.repeat(1000)), 'x'.repeat(500)],
  ] as const)
    t.equal(describeFailure(error), words)
  t.end()
})

test('a proxy that refuses or breaks ends no process: at the start, on an unknown key, and again', async (t) => {
  const { sign } = await (await startIssuer(t)).makeSigner('one')
  const tokens = await Promise.all(
    ['a', 'b', 'c', 'd'].map((kid) => sign({ iss: 'https://issuer.example' }, { kid })),
  )
  const refuse = async (head: string, reason: RegExp) => {
    let connections = 0
    const server = createServer(answer(head)).on('connection', () => connections++)
    const proxy = `http://127.0.0.1:${await listen(t, server)}`
    const { list, logs, logged } = await spawnAccepting(t, {
      ...{ OIDC_ISSUER: 'https://issuer.example', OIDC_AUDIENCE: audience, NODE_USE_ENV_PROXY: '1' },
      ...{ HTTPS_PROXY: proxy, https_proxy: proxy, NO_PROXY: '', no_proxy: '' },
    })
    await logs(/cannot be loaded/)
    t.match(JSON.parse(/.*cannot be loaded.*/.exec(logged())?.[0] as string).reason, reason, head)
    for (const token of tokens) t.equal((await list(token)).status, 503, head)
    t.ok(connections <= 4, `${connections} connections: two loads of two documents`)
  }
  await Promise.all([
    refuse('HTTP/1.1 407 Proxy Authentication Required\nContent-Length: 0\n\n', /407|aborted/),
    refuse('HTTP/1.1 200 O', /./),
  ])
})

test('keys are found by discovery, with or without a trailing slash, or at OIDC_JWKS_URL', async (t) => {
  for (const path of ['/realm/', '/', '', '/a/b']) {
    const issuer = await startIssuer(t, path)
    const { jwk } = await issuer.makeSigner('one')
    const bare = path.replace(/\/$/, '')
    const places: [place: string, env: NodeJS.ProcessEnv][] = [
      [`${bare}/.well-known/openid-configuration`, {}],
      ['', { OIDC_JWKS_URL: `http://127.0.0.1:${issuer.port}/keys?appid=1` }],
    ]
    for (const [place, env] of places) {
      issuer.answer(({ url }, response) => {
        if (url === place)
          json(response, { issuer: issuer.url, jwks_uri: `http://127.0.0.1:${issuer.port}/jwks` })
        else if (url === (place ? '/jwks' : '/keys?appid=1')) json(response, { keys: [jwk] })
        else response.writeHead(404).end()
      })
      const keys = keysOf({ ...issuer.env, ...env }, short)
      let found: unknown
      // On a busy machine a load may take longer than it may.
      await until(async () => {
        found = await keys.find({ alg: 'ES256', kid: 'one' }, '')
        return found !== 'unavailable'
      })
      t.type(found, 'object', `${path}: ${place || 'OIDC_JWKS_URL'}`)
    }
  }
})

test('keys are not taken from where the issuer redirects to, however good they are there', async (t) => {
  const issuer = await startIssuer(t)
  const { jwk } = await issuer.makeSigner('one')
  for (const env of [{}, { OIDC_JWKS_URL: `http://127.0.0.1:${issuer.port}/keys` }]) {
    issuer.answer(({ url = '' }, response) => {
      if (url.endsWith('/good/keys')) json(response, { keys: [jwk] })
      else if (url.includes('/good/'))
        json(response, { issuer: issuer.url, jwks_uri: `${issuer.url}/good/keys` })
      else response.writeHead(302, { location: `/good${url}` }).end()
    })
    t.equal(await keysOf({ ...issuer.env, ...env }).find({ alg: 'ES256', kid: 'one' }, ''), 'unavailable')
  }
})

test('a weak, malformed or symmetric key verifies nothing, nor does one that is not for signatures', async (t) => {
  const issuer = await startIssuer(t)
  const [good, rsa] = [await issuer.makeSigner('good'), await issuer.makeSigner('rsa', 'RS256')]
  const many = Array.from({ length: 1000 }, (_, n) => ({ ...good.jwk, kid: `${n}` }))
  issuer.publish(
    good.jwk,
    { ...rsa.jwk, kid: 'small', n: rsa.jwk.n?.slice(0, 171) },
    { kty: 'RSA', kid: { toString: 1 }, e: 'AQAB' },
    7,
    null,
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

test('nobody without a valid token can have a valid one refused after a rotation', async (t) => {
  const issuer = await startIssuer(t)
  const [one, two] = [await issuer.makeSigner('one'), await issuer.makeSigner('two')]
  issuer.publish(one.jwk)
  const { list } = await startAccepting(t, issuer.env)
  await until(async () => (await list(await one.sign())).status === 200)
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

test('an issuer that hangs holds up no token whose key is known, and few others wait', async (t) => {
  const issuer = await startIssuer(t)
  const [one, two] = [await issuer.makeSigner('one'), await issuer.makeSigner('two')]
  issuer.publish(one.jwk)
  const { list, told } = await startAccepting(t, issuer.env)
  await until(async () => (await list(await one.sign())).status === 200)
  const before = told().length
  let hanging = 0
  issuer.answer(() => void hanging++)
  const unknown = await Promise.all(Array.from({ length: 260 }, (_, n) => two.sign({}, { kid: `${n}` })))
  await until(async () => {
    if (hanging === 0) void list(await two.sign({ jti: `${Math.random()}` }))
    return hanging > 0
  })
  const answers = unknown.map((token) => list(token))
  t.equal((await list(await one.sign({ jti: 'new' }))).status, 200)
  const all = await Promise.all(answers)
  t.ok(all.every(({ status }) => status === 503))
  t.ok(all.some(({ text }) => text.includes('problems/unread')))
  await until(() => told().length > before)
  t.equal(told().length, before + 1)
  issuer.answer(undefined)
  issuer.publish(one.jwk, two.jwk)
  await until(async () => (await list(await two.sign({ jti: 'later' }))).status === 200)
})

test('too many tokens that wait for keys are 503 overloaded, and none is counted once they have their answers', async (t) => {
  const issuer = await startIssuer(t)
  issuer.answer(() => {})
  const keys = keysOf(issuer.env, { limitMs: 200, pauseMs: 1 })
  for (let round = 0; round < 3; round++) {
    const waits = Array.from({ length: 251 }, (_, n) => keys.find({ alg: 'ES256' }, `${n}`))
    const settled = await Promise.allSettled(waits)
    t.match(settled.at(-1), { status: 'rejected', reason: { outcome: 'overloaded' } })
    t.match(settled[0], { status: 'fulfilled', value: 'unavailable' })
  }
})

test('each outage of the issuer is one line at its beginning and one at its end', async (t) => {
  const issuer = await startIssuer(t)
  const { sign, jwk } = await issuer.makeSigner('one')
  issuer.publish(jwk)
  issuer.answer(fail)
  const { list, told, logs, logged } = await startAccepting(t, issuer.env)
  const answers = await Promise.all(
    Array.from({ length: 50 }, async (_, n) => list(await sign({ jti: `${n}` }))),
  )
  t.ok(answers.every(({ status, headers }) => status === 503 && headers.get('retry-after')))
  await logs(/(openid-configuration answered 500|timeout)".*cannot be loaded/)
  t.equal(told().length, 1)
  issuer.answer(undefined)
  await until(async () => (await list(await sign())).status === 200)
  t.match(told(), [/cannot be loaded/, /loaded again/])
  t.notMatch(logged(), '"stack"')
})

test('keys are used for 24 hours after the last success, and then no longer', async (t) => {
  const issuer = await startIssuer(t)
  const { jwk } = await issuer.makeSigner('one')
  issuer.publish(jwk)
  const { lines, logger } = collect()
  const [freshMs, staleMs] = [300_000, 86_400_000]
  let nowMs = 0
  const keys = keysOf(issuer.env, { logger, now: () => nowMs, limitMs: 20_000 })
  const find = () => keys.find({ alg: 'ES256', kid: 'one' }, '')
  const found = async () => typeof (await find()) === 'object'
  t.ok(await found())
  t.equal(keys.retryMs(), 5000, 'an unknown key does not have them loaded again at once')
  nowMs = freshMs - 1
  t.ok(await found())
  t.equal(issuer.fetches, 2)
  nowMs = freshMs + 1
  t.ok(await found(), 'at once')
  await keys.load()
  t.equal(issuer.fetches, 4, 'and loaded again behind it')
  issuer.answer(fail)
  nowMs = freshMs + staleMs - 1
  t.ok(await found())
  await keys.load()
  nowMs += 5001
  for (let n = 0; n < 3; n++) t.equal(await find(), 'unavailable')
  issuer.answer(undefined)
  nowMs += 5000
  t.ok(await found())
  t.match(lines, [{ msg: /cannot be loaded/ }, { msg: /loaded again/ }])
})

test('an issuer that fails is asked twice in two pauses, and again when these are over', async (t) => {
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

test('a start does not wait for the issuer and makes no first token', async (t) => {
  const issuer = await startIssuer(t)
  issuer.answer(fail)
  const { list, output } = await spawnAccepting(t, { ...issuer.env, ACCESS_TOKENS: '' })
  t.notMatch(output().stdout, 'plant_')
  const early = await list(await (await issuer.makeSigner('one')).sign())
  t.match(early, { status: 503, text: '/problems/unread' })
  t.match(early.headers.get('retry-after'), /^([2-9]|10)$/, 'the rest of two pauses')
  t.notMatch(output().stderr, '"level":50')
})
