// The keys of an issuer: where they are looked for, how often, and what an issuer that fails does to others.
import type { ServerResponse } from 'node:http'
import pino from 'pino'
import { test } from 'tap'
import '../support/short-limits.ts'
import { until } from '../support/until.ts'

const { readConfig } = await import('../../src/config/load-config.ts')
const { keysFreshMs, keysPauseMs, keysStaleMs } = await import('../../src/limits.ts')
const { issuerOf } = await import('../../src/tokens/oidc/issuer.ts')
const { IssuerKeys } = await import('../../src/tokens/oidc/issuer-keys.ts')
const { request } = await import('../support/service.ts')
const { audience, spawnAccepting, startAccepting, startIssuer } = await import('./issuer.ts')

const json = (response: ServerResponse, value: unknown) => void response.end(JSON.stringify(value))

test('keys are found by discovery, with a trailing slash or the place of RFC 8414, or at OIDC_JWKS_URL', async (t) => {
  for (const path of ['/realm/', '/', '', '/a/b']) {
    const issuer = await startIssuer(t, path)
    const { jwk } = await issuer.makeSigner('one')
    const bare = path.replace(/\/$/, '')
    const places: [place: string, env: NodeJS.ProcessEnv][] = [
      [`${bare}/.well-known/openid-configuration`, {}],
      [`/.well-known/oauth-authorization-server${bare}`, {}],
      ['', { OIDC_JWKS_URL: `http://127.0.0.1:${issuer.port}/keys?appid=1` }],
    ]
    for (const [place, env] of places) {
      issuer.answer(({ url }, response) => {
        if (url === place) json(response, { issuer: issuer.url, jwks_uri: `${issuer.url}/jwks` })
        else if (url === (place ? `${new URL(issuer.url).pathname}/jwks` : '/keys?appid=1'))
          json(response, { keys: [jwk] })
        else if (path === '/' || path === '')
          json(response.writeHead(url?.endsWith('/jwks') ? 200 : 404), { keys: [jwk] })
        else response.writeHead(404).end()
      })
      const config = readConfig({ ...issuer.env, ...env })
      const keys = new IssuerKeys(issuerOf(config) as never, pino({ level: 'silent' }))
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

test('hundreds of unknown kids cause at most two loads in ten seconds, and are 401 once a load has brought no key for them', async (t) => {
  const startMs = performance.now()
  const issuer = await startIssuer(t)
  const [one, two] = await Promise.all([issuer.makeSigner('one'), issuer.makeSigner('two')])
  issuer.publish(one.jwk)
  const { list } = await startAccepting(t, { ...issuer.env, AUTH_FAILURE_LIMIT: 'off' })
  await until(async () => (await list(await one.sign())).status === 200)
  const tokens = await Promise.all(
    Array.from({ length: 300 }, (_, n) => two.sign({}, { kid: `unknown ${n}` })),
  )
  const statuses = new Map<number, number>()
  await until(async () => {
    statuses.clear()
    for (let at = 0; at < tokens.length; at += 50)
      for (const { status } of await Promise.all(tokens.slice(at, at + 50).map(list)))
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
    return statuses.get(401) === tokens.length
  })
  const allowed = 2 + (2 * (performance.now() - startMs)) / (2 * keysPauseMs)
  t.ok(issuer.fetches / 2 <= allowed, `${issuer.fetches} fetches`)
})

test('nobody without a valid token can have a valid one refused after a rotation', async (t) => {
  const issuer = await startIssuer(t)
  const [one, two, three] = await Promise.all(['one', 'two', 'three'].map((kid) => issuer.makeSigner(kid)))
  if (!one || !two || !three) throw new Error('there are three')
  issuer.publish(one.jwk)
  const { list } = await startAccepting(t, { ...issuer.env, AUTH_FAILURE_LIMIT: '3/h' })
  await until(async () => (await list(await one.sign())).status === 200)
  for (let round = 0; round < 3; round++) {
    const junk = await Promise.all([1, 2].map((n) => two.sign({}, { kid: `${round} ${n}` })))
    for (const { status } of await Promise.all(junk.map(list))) t.not(status, 200)
    const next = await issuer.makeSigner(`next ${round}`)
    issuer.publish(next.jwk)
    const token = await next.sign()
    const statuses = new Set<number>()
    await until(async () => {
      const { status, headers, text } = await list(token)
      statuses.add(status)
      if (status === 503) {
        t.match(text, 'problems/unread')
        const seconds = Number(headers.get('retry-after'))
        t.ok(seconds >= 1 && seconds <= keysPauseMs / 1000 + 1, `${seconds} s`)
      }
      return status === 200
    })
    t.strictSame(
      [...statuses].filter((status) => status !== 503),
      [200],
    )
  }
})

test('an issuer that hangs holds up no token whose key is known, however many wait for others', async (t) => {
  const issuer = await startIssuer(t)
  const [one, two] = await Promise.all([issuer.makeSigner('one'), issuer.makeSigner('two')])
  issuer.publish(one.jwk)
  const { list, told } = await startAccepting(t, { ...issuer.env, AUTH_FAILURE_LIMIT: 'off' })
  await until(async () => (await list(await one.sign())).status === 200)
  const before = told().length
  const unknown = await Promise.all(Array.from({ length: 50 }, (_, n) => two.sign({}, { kid: `${n}` })))
  let hanging = 0
  issuer.answer(() => void hanging++)
  await until(async () => {
    if (hanging === 0) void list(await two.sign({ jti: `${Math.random()}` }))
    return hanging > 0
  })
  const answers = unknown.map(list)
  t.equal((await list(await one.sign({ jti: 'new' }))).status, 200)
  for (const answer of await Promise.all(answers)) {
    t.equal(answer.status, 503)
    t.match(answer.text, 'problems/unread')
  }
  t.ok(told().length - before <= 1, 'one line')
})

test('AUTH_FAILURE_LIMIT counts what is wrong; never a good token, nor what cannot be looked up', async (t) => {
  const issuer = await startIssuer(t)
  const [one, two] = await Promise.all([issuer.makeSigner('one'), issuer.makeSigner('two')])
  issuer.answer((_request, response) => void response.writeHead(500).end())
  const env = { ...issuer.env, AUTH_FAILURE_LIMIT: '3/h' }
  const { list, metrics } = await startAccepting(t, env)
  const good = await one.sign()
  for (const status of (await Promise.all(Array.from({ length: 20 }, () => list(good)))).map(
    (answer) => answer.status,
  ))
    t.equal(status, 503)
  for (let n = 0; n < 10; n++) {
    const { status, headers } = await list(good)
    t.same([status, headers.get('connection')], [503, 'keep-alive'])
  }
  t.match(await metrics.write(), /plant_store_oidc_refused_total\{reason="unavailable"\} 30\n/)
  issuer.answer(undefined)
  issuer.publish(one.jwk)
  const other = await startAccepting(t, env)
  await until(async () => (await other.list(good)).status === 200)
  const bad = await Promise.all(['a', 'b', 'c', 'd'].map((jti) => two.sign({ jti }, { kid: 'one' })))
  const answers = []
  for (const token of [...bad, await one.sign()]) answers.push((await other.list(token)).status)
  t.same(answers, [401, 401, 401, 429, 200])
})

test('each outage of the issuer is one line at its beginning and one at its end, however many requests come meanwhile', async (t) => {
  const issuer = await startIssuer(t)
  const { sign, jwk } = await issuer.makeSigner('one')
  issuer.publish(
    jwk,
    { kty: 'RSA', kid: { toString: 1 }, e: 'AQAB' },
    { ...jwk, kid: 'private', d: 'x' },
    null,
  )
  issuer.answer((_request, response) => void response.writeHead(503).end())
  const { list, told, logs, logged } = await startAccepting(t, { ...issuer.env, AUTH_FAILURE_LIMIT: 'off' })
  const answers = await Promise.all(
    Array.from({ length: 50 }, async (_, n) => list(await sign({ jti: `${n}` }))),
  )
  t.ok(answers.every(({ status, headers }) => status === 503 && headers.get('retry-after')))
  await logs(/(openid-configuration answered 503|aborted due to timeout)".*cannot be loaded/)
  t.equal(told().length, 1)
  issuer.answer(undefined)
  await until(async () => (await list(await sign())).status === 200)
  await logs(/"reason":"\?: malformed; private: a secret key; \?: no key"/)
  t.match(told(), [/cannot be loaded/, /loaded again/, /some keys .* are not used/])
  issuer.publish(jwk)
  const { sign: other } = await issuer.makeSigner('other')
  await until(async () => {
    await list(await other({ jti: `${Math.random()}` }))
    return told().length === 4
  })
  t.match(told()[3], 'no key of OIDC_ISSUER has to be left out any more')
  t.notMatch(logged(), '"stack"')
})

test('a document of 200 MB, or one that trickles, is given up; memory does not grow', async (t) => {
  const chunk = Buffer.alloc(1 << 16, 32)
  let written = 0
  let ended = 0
  const issuer = await startIssuer(t)
  const { sign, jwk } = await issuer.makeSigner('one')
  const stop = (response: ServerResponse, timer?: NodeJS.Timeout) =>
    response.on('close', () => {
      ended++
      clearInterval(timer)
    })
  issuer.publish(jwk)
  const { list, child } = await spawnAccepting(t, { ...issuer.env, OIDC_JWKS_URL: `${issuer.url}/keys` })
  const rssMiB = async () => {
    const { readFileSync } = await import('node:fs')
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024
  }
  await until(async () => (await list(await sign())).status === 200)
  const before = await rssMiB()
  let highest = before
  issuer.answer((_request, response) => {
    stop(response)
    const push = () => {
      while (written < 200e6 && !response.destroyed && response.write(chunk)) written += chunk.length
    }
    response.on('drain', push)
    push()
  })
  const { sign: other } = await issuer.makeSigner('other')
  const fail = async (rounds: number) =>
    until(async () => {
      t.equal((await list(await sign({ jti: `${Math.random()}` }))).status, 200)
      await list(await other({ jti: `${Math.random()}` }))
      highest = Math.max(highest, await rssMiB())
      return ended >= rounds
    })
  await fail(1)
  t.ok(written < 20e6, `${written} bytes were taken`)
  issuer.answer((_request, response) => {
    const timer = setInterval(() => response.write(' '), 20)
    stop(response, timer)
  })
  await fail(2)
  // With full time-outs it is asked some 700 times, which alone makes it grow by up to 30.
  t.ok(highest - before < 64, `${Math.round(highest - before)} MiB`)
})

test('keys are believed for 24 hours after the last success, and then no longer', async (t) => {
  const issuer = await startIssuer(t)
  const { jwk } = await issuer.makeSigner('one')
  issuer.publish(jwk)
  const lines: string[] = []
  const logger = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line).msg) })
  let nowMs = 0
  const keys = new IssuerKeys(issuerOf(readConfig(issuer.env)) as never, logger, () => nowMs)
  const find = () => keys.find({ alg: 'ES256', kid: 'one' }, '')
  const found = async () => typeof (await find()) === 'object'
  t.ok(await found())
  t.equal(issuer.fetches, 2)
  nowMs = keysFreshMs - 1
  t.ok(await found())
  t.equal(issuer.fetches, 2)
  nowMs = keysFreshMs + 1
  t.ok(await found(), 'at once')
  await keys.load()
  t.equal(issuer.fetches, 4, 'and loaded again behind it')
  issuer.answer((_request, response) => void response.writeHead(500).end())
  nowMs = keysFreshMs + keysStaleMs - 1
  t.ok(await found())
  await keys.load()
  nowMs += keysPauseMs + 1
  for (let n = 0; n < 3; n++) t.equal(await find(), 'unavailable')
  t.match(lines, [/cannot be loaded/, /too old/])
  t.equal(lines.length, 2)
  issuer.answer(undefined)
  nowMs += keysPauseMs
  t.ok(await found())
  t.match(lines.slice(2), [/loaded again/, /accepted again/])
})

test('an issuer that fails is asked twice in two pauses, and again by itself when these are over', async (t) => {
  const issuer = await startIssuer(t)
  issuer.answer((_request, response) => void response.writeHead(500).end())
  const env = { ...issuer.env, OIDC_JWKS_URL: `${issuer.url}/keys` }
  let nowMs = 0
  const logger = pino({ level: 'silent' })
  const keys = new IssuerKeys(issuerOf(readConfig(env)) as never, logger, () => nowMs)
  for (const fetches of [1, 2]) {
    await keys.load()
    t.equal(issuer.fetches, fetches)
  }
  for (const fetches of [2, 4]) {
    nowMs += 2 * keysPauseMs - 1
    await keys.load()
    t.equal(issuer.fetches, fetches, 'not a third time')
    nowMs++
    await until(() => issuer.fetches === fetches + 1)
    await keys.load()
    t.ok(issuer.fetches <= fetches + 2)
    await keys.load()
  }
})

test('a key that anybody could sign for is dropped, and one that is not for signatures', async (t) => {
  const issuer = await startIssuer(t)
  const [rsa, small, other] = await Promise.all([
    issuer.makeSigner('rsa', 'RS256'),
    issuer.makeSigner('small', 'RS256'),
    issuer.makeSigner('for encryption'),
  ])
  issuer.publish(
    { ...rsa.jwk, e: 'AQ' },
    { ...small.jwk, n: small.jwk.n?.slice(0, 171) },
    { ...other.jwk, use: 'enc' },
    { ...small.jwk, n: small.jwk.n?.slice(0, 171), kid: 'not ours', use: 'enc' },
  )
  const { list, logs } = await startAccepting(t, issuer.env)
  for (const token of [await rsa.sign(), await other.sign()])
    await until(async () => (await list(token)).status === 401)
  await logs(/"reason":"rsa: weak; small: weak"/)
})

test('THREADS=2: each thread takes the tokens, and the metric has the sum', async (t) => {
  const issuer = await startIssuer(t)
  const { sign, jwk } = await issuer.makeSigner('one')
  issuer.publish(jwk)
  const { url, metrics, told } = await startAccepting(t, { ...issuer.env, THREADS: '2' })
  const bad = await sign({ aud: 'other' })
  for (let n = 0; n < 20; n++) {
    const headers = {
      authorization: `Bearer ${n % 2 ? bad : await sign({ jti: `${n}` })}`,
      connection: 'close',
    }
    let status = 503
    await until(async () => {
      status = (await request(`${url}/plants`, { headers })).status
      return status !== 503
    })
    t.equal(status, n % 2 ? 401 : 200)
  }
  t.match(await metrics.write(), /plant_store_oidc_refused_total\{reason="audience"\} 10\n/)
  t.notMatch(told().join(), /not used|too old/)
  t.equal(audience, issuer.env.OIDC_AUDIENCE)
})
