// JWTs of an issuer: what is accepted, what is refused and how, and what happens when the issuer is away.
import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import pino from 'pino'
import { test } from 'tap'
import { readConfig } from '../../src/config/load-config.ts'
import {
  issuedVerdictMs,
  maxWaitingJwts,
  requestsPerConnection,
  verificationsAtOnce,
} from '../../src/limits.ts'
import { noMeter } from '../../src/runtime/meter.ts'
import { makeToken } from '../../src/tokens/format.ts'
import { type Issuer, issuerOf } from '../../src/tokens/oidc/issuer.ts'
import { IssuerKeys } from '../../src/tokens/oidc/issuer-keys.ts'
import { acceptIssuer, explainToken } from '../../src/tokens/oidc/issuer-tokens.ts'
import { reasons, toleranceS } from '../../src/tokens/oidc/jwt.ts'
import '../support/short-limits.ts'
import { cli, runProgram } from '../cli/imports.ts'
import { runCommand } from '../support/commands.ts'
import { findPorts } from '../support/postgres.ts'
import { request } from '../support/service.ts'
import { until } from '../support/until.ts'
import { compose, exchange } from '../support/wire.ts'
import { audience, spawnAccepting, startAccepting, startIssuer, unhurried } from './issuer.ts'

const base64url = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

test('a token of the issuer is accepted, with each algorithm, for the scopes that it names', async (t) => {
  const issuer = await startIssuer(t)
  const algorithms = [
    'RS256',
    'RS384',
    'RS512',
    'PS256',
    'PS384',
    'PS512',
    'ES256',
    'ES384',
    'ES512',
    'EdDSA',
  ]
  const signers = await Promise.all(algorithms.map((alg) => issuer.makeSigner(alg, alg)))
  issuer.publish(...signers.map(({ jwk }) => jwk))
  const { list, add } = await startAccepting(t, issuer.env)
  for (const { alg, sign } of signers) t.equal((await list(await sign())).status, 200, alg)
  const [{ sign }] = signers as [(typeof signers)[0]]
  t.equal((await add(await sign())).status, 200)
  const reader = await sign({ scope: 'openid plants:read' })
  t.equal((await list(reader)).status, 200)
  const refused = await add(reader)
  t.equal(refused.status, 403)
  const metadata = 'resource_metadata="https://plants.example/.well-known/oauth-protected-resource/store"'
  t.equal(
    refused.headers.get('www-authenticate'),
    `Bearer realm="plant-store", error="insufficient_scope", scope="plants:write", ${metadata}`,
  )
  for (const claims of [
    { scope: undefined, scp: ['plants:read'] },
    { scope: '', permissions: ['plants:read'] },
  ])
    t.equal((await list(await sign(claims))).status, 200, JSON.stringify(claims))
  t.equal((await list(await sign({ scope: 'plants:*' }))).status, 403)
  for (const aud of [[audience], ['other', audience]]) t.equal((await list(await sign({ aud }))).status, 200)
  const missing = await request(`${(await startAccepting(t, issuer.env)).url}/plants`, {
    headers: { authorization: '' },
  })
  t.match(missing.headers.get('www-authenticate'), `Bearer realm="plant-store", ${metadata}`)
})

test('forged and odd tokens are refused, and nothing that they name is fetched', async (t) => {
  const issuer = await startIssuer(t)
  const [good, other, rsa] = await Promise.all([
    issuer.makeSigner('good'),
    issuer.makeSigner('other'),
    issuer.makeSigner('rsa', 'RS256'),
  ])
  issuer.publish(good.jwk, rsa.jwk)
  const { list } = await startAccepting(t, issuer.env)
  const token = await good.sign()
  t.equal((await list(token)).status, 200)
  const [head, body, signature] = token.split('.') as [string, string, string]
  const header = { alg: 'ES256', kid: 'good', typ: 'at+jwt' }
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
  const nowS = Date.now() / 1000
  const raw = (text: string) => `${head}.${base64url(text)}.${signature}`
  const odd = {
    'no signature': `${head}.${body}.`,
    'two parts': `${head}.${body}`,
    'four parts': `${token}.x`,
    'five parts (JWE)': `${token}.x.y`,
    'alg none': `${base64url({ ...header, alg: 'none' })}.${body}.`,
    'alg None': `${base64url({ ...header, alg: 'None' })}.${body}.${signature}`,
    'HS256 by the public key': `${base64url({ ...header, alg: 'HS256', kid: 'rsa' })}.${body}.${signature}`,
    'another algorithm of the key': `${base64url({ ...header, alg: 'ES384' })}.${body}.${signature}`,
    'no alg': `${base64url({ typ: 'at+jwt' })}.${body}.${signature}`,
    'alg a list': `${base64url({ ...header, alg: ['ES256'] })}.${body}.${signature}`,
    'a key of others': await other.sign(),
    'a key of others by our kid': await other.sign({}, { kid: 'good' }),
    'an embedded key': await other.sign({}, { jwk: other.jwk, kid: 'good' }),
    jku: await other.sign({}, { jku: `http://127.0.0.1:${issuer.port}/evil`, kid: 'good' }),
    x5u: await other.sign({}, { x5u: `http://127.0.0.1:${issuer.port}/evil`, kid: 'good' }),
    'kid a path': await other.sign({}, { kid: '../../dev/null' }),
    'kid SQL': await other.sign({}, { kid: "' OR 1=1 --" }),
    'kid a number': `${base64url({ ...header, kid: 7 })}.${body}.${signature}`,
    'kid null': `${base64url({ ...header, kid: null })}.${body}.${signature}`,
    'kid too long': `${base64url({ ...header, kid: 'k'.repeat(257) })}.${body}.${signature}`,
    'a zero signature': `${head}.${body}.${Buffer.alloc(64).toString('base64url')}`,
    'a DER signature': `${head}.${body}.${Buffer.concat([Buffer.from('3044', 'hex'), Buffer.alloc(68)]).toString('base64url')}`,
    'a signature cut': `${head}.${body}.${signature.slice(0, -4)}`,
    'a changed claim': `${head}.${base64url({ ...claims, sub: 'admin' })}.${signature}`,
    crit: `${base64url({ ...header, crit: ['exp'] })}.${body}.${signature}`,
    b64: `${base64url({ ...header, b64: true })}.${body}.${signature}`,
    zip: `${base64url({ ...header, zip: 'DEF' })}.${body}.${signature}`,
    padded: `${token}=`,
    'padded header': `${head}=.${body}.${signature}`,
    'standard base64': token.replace(/[-_]/g, '+').concat('/'),
    'a bit that no byte needs': `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'z'}`,
    'a header that is no JSON': `${base64url('{')}.${body}.${signature}`,
    'a header that is a list': `${base64url([])}.${body}.${signature}`,
    'claims that are no JSON': raw('{'),
    'claims that are a list': raw('[]'),
    'claims that are no UTF-8': `${head}.${Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')}.${signature}`,
    huge: await good.sign({ padding: 'x'.repeat(8000) }),
    'typ JWT': await good.sign({}, { typ: 'JWT' }),
    'no typ': await good.sign({}, { typ: undefined }),
    'typ a number': `${base64url({ ...header, typ: 1 })}.${body}.${signature}`,
    'iss with a slash more': await good.sign({ iss: `${issuer.url}/` }),
    'iss in capitals': await good.sign({ iss: issuer.url.toUpperCase() }),
    'no iss': await good.sign({ iss: undefined }),
    'iss a list': await good.sign({ iss: [issuer.url] as never }),
    'another iss': await good.sign({ iss: 'https://other.example' }),
    'no aud': await good.sign({ aud: undefined }),
    'another aud': await good.sign({ aud: 'other' }),
    'aud with a slash more': await good.sign({ aud: `${audience}/` }),
    'aud a number': await good.sign({ aud: 7 as never }),
    'aud with a number': await good.sign({ aud: [audience, 7] as never }),
    'aud empty': await good.sign({ aud: [] }),
    'no exp': await good.sign({ exp: undefined }),
    'exp past': await good.sign({ exp: nowS - 31 }),
    'exp a text': await good.sign({ exp: `${nowS + 60}` as never }),
    'exp 1e400': raw(JSON.stringify(claims).replace(/"exp":\d+/, '"exp":1e400')),
    'exp negative': await good.sign({ exp: -1 }),
    'exp zero': await good.sign({ exp: 0 }),
    'exp null': await good.sign({ exp: null as never }),
    'exp true': await good.sign({ exp: true as never }),
    'iat ahead': await good.sign({ iat: nowS + 60 }),
    'iat a text': await good.sign({ iat: 'now' as never }),
    'nbf ahead': await good.sign({ nbf: nowS + 60 }),
    'nbf a text': await good.sign({ nbf: '0' as never }),
    'no sub': await good.sign({ sub: undefined }),
    'sub empty': await good.sign({ sub: '' }),
    'sub with a line feed': await good.sign({ sub: 'a\nb' }),
    'sub with a NUL': await good.sign({ sub: 'a\0b' }),
    'sub not ASCII': await good.sign({ sub: 'gärtner' }),
    'sub too long': await good.sign({ sub: 'x'.repeat(256) }),
    'sub a number': await good.sign({ sub: 7 as never }),
    'sub an object': await good.sign({ sub: {} as never }),
    cnf: await good.sign({ cnf: { jkt: 'x' } }),
    nonce: await good.sign({ nonce: 'x' }),
    at_hash: await good.sign({ at_hash: 'x' }),
    c_hash: await good.sign({ c_hash: 'x' }),
    events: await good.sign({ events: {} }),
    nested: await good.sign({}, { cty: 'JWT' }).then((inner) => `${head}.${base64url(inner)}.${signature}`),
    'a dot before': `.${token}`,
    'a dot behind': `${token}.`,
    'only dots': 'eyJ..',
    'a JWT in a JWT': `ey.${token}`,
    'two claims of one name': raw(`{"iss":"${issuer.url}","iss":"x"}`),
  }
  const before = issuer.fetches
  const waiting: string[] = []
  t.ok(Object.keys(odd).length >= 80, `${Object.keys(odd).length} tokens`)
  // Of those with an unknown kid each is 503 until the keys were loaded once more.
  for (const text of Object.values(odd)) if ((await list(text)).status === 503) waiting.push(text)
  t.ok(waiting.length < 8, `${waiting.length} wait`)
  t.ok(issuer.fetches - before <= 2, 'at most one load')
  for (const text of waiting) await until(async () => (await list(text)).status === 401)
  for (const [title, text] of Object.entries(odd)) {
    const { status, headers } = await list(text)
    t.equal(status, 401, title)
    t.match(headers.get('www-authenticate'), 'error="invalid_token"', title)
  }
  t.equal(
    (await list(await good.sign({ exp: Date.now() / 1000 - 20.5 }))).status,
    200,
    'within the tolerance, with a fraction',
  )
  t.equal((await list(await good.sign({}, { typ: 'application/AT+JWT' }))).status, 200)
})

test('a verdict does not last as long as its token: the issuer may have withdrawn the key', async (t) => {
  const issuer = await startIssuer(t)
  const { sign, jwk } = await issuer.makeSigner('one')
  issuer.publish(jwk)
  const config = issuerOf(readConfig(issuer.env)) as Issuer
  const exp = Math.floor(Date.now() / 1000) + 36_000
  const verdict = await explainToken(await sign({ exp }), config, pino({ level: 'silent' }))
  if (typeof verdict === 'string') return t.fail(verdict)
  t.ok(verdict.untilMs - performance.now() <= issuedVerdictMs)
})

test('with OIDC_TOKEN_TYPE=JWT, a prefix and another claim', async (t) => {
  const issuer = await startIssuer(t)
  const signer = await issuer.makeSigner('one')
  issuer.publish({ ...signer.jwk, kid: undefined, alg: undefined })
  const { list } = await startAccepting(t, {
    ...issuer.env,
    OIDC_TOKEN_TYPE: 'JWT',
    OIDC_SCOPE_CLAIM: 'roles',
    OIDC_SCOPE_PREFIX: 'api://plants/',
  })
  for (const typ of ['JWT', 'jwt', 'at+jwt', undefined]) {
    const token = await signer.sign({ roles: ['api://plants/plants:read'] }, { typ, kid: undefined })
    t.equal((await list(token)).status, 200, `${typ}, without a kid`)
  }
  t.equal((await list(await signer.sign({}, { typ: 'dpop+jwt' }))).status, 401)
  const without = await list(await signer.sign({ roles: ['plants:read'] }, { kid: undefined }))
  t.equal(without.status, 403)
  t.match(without.headers.get('www-authenticate'), 'scope="api://plants/plants:read"')
})

test('the start does not wait for the issuer, and a key that cannot be looked up is 503', async (t) => {
  const issuer = await startIssuer(t)
  const [one, two] = await Promise.all([issuer.makeSigner('one'), issuer.makeSigner('two')])
  issuer.answer((_request, response) => void response.writeHead(500).end())
  const { list, output } = await spawnAccepting(t, { ...issuer.env, ADMIN_PORT: '0', ACCESS_TOKENS: '' })
  t.notMatch(output().stdout, 'plant_', 'no first token is made')
  const early = await list(await one.sign())
  t.equal(early.status, 503)
  t.match(early.text, '/problems/unread')
  t.match(early.headers.get('retry-after'), /^\d+$/)
  issuer.answer(undefined)
  issuer.publish(one.jwk)
  await until(async () => (await list(await one.sign())).status === 200)
  t.not((await list(await two.sign())).status, 200, 'a key that is not there yet')
  issuer.publish(one.jwk, two.jwk)
  await until(async () => (await list(await two.sign())).status === 200)
  issuer.answer((_request, response) => void response.writeHead(302, { location: '/elsewhere' }).end())
  const three = await issuer.makeSigner('three')
  await until(async () => (await list(await three.sign())).status === 503)
  t.equal((await list(await one.sign())).status, 200, 'keys that are known stay good')
  const lines = output()
    .stderr.split('\n')
    .filter((line) => /keys of OIDC_ISSUER/.test(line))
  t.ok(lines.length <= 4, `${lines.length} lines`)
  t.notMatch(output().stderr, /"stack"/)
})

/** What a service that has just started finds; its answer is 503 when that is `unavailable`. */
function findKey(env: NodeJS.ProcessEnv) {
  const keys = new IssuerKeys(issuerOf(readConfig(env)) as Issuer, pino({ level: 'silent' }))
  return keys.find({ alg: 'ES256', kid: 'good' }, '')
}

test('an issuer that misbehaves is given up, and its bad keys are dropped', async (t) => {
  const issuer = await startIssuer(t)
  const good = await issuer.makeSigner('good')
  const weak = await issuer.makeSigner('weak', 'RS256')
  const answers = (document: (path: string) => string | undefined) =>
    issuer.answer((request, response) => void response.end(document(String(request.url))))
  for (const [title, respond] of Object.entries({
    'another issuer': () =>
      answers(() => JSON.stringify({ issuer: 'https://other.example', jwks_uri: issuer.url })),
    'no JSON': () => answers(() => '<html>'),
    'too long': () => answers(() => JSON.stringify({ pad: 'x'.repeat(300_000) })),
    'no object': () => answers(() => 'null'),
    'no https keys': () => answers(() => JSON.stringify({ issuer: issuer.url, jwks_uri: 'ftp://a' })),
    'no keys': () => answers(() => JSON.stringify({ issuer: issuer.url, jwks_uri: issuer.url, keys: {} })),
    hangs: () => issuer.answer(() => {}),
  })) {
    respond()
    t.equal(await findKey(issuer.env), 'unavailable', title)
  }
  const [closed] = await findPorts(1)
  const env = { ...issuer.env, OIDC_ISSUER: `http://127.0.0.1:${closed}` }
  t.equal(await findKey(env), 'unavailable', 'nobody is there')
  issuer.answer(undefined)
  const many = Array.from({ length: 1000 }, (_, n) => ({ ...good.jwk, kid: `${n}` }))
  issuer.publish(
    good.jwk,
    { kty: 'RSA', kid: 'bad', n: '!', e: 'AQAB' },
    7,
    null,
    { ...weak.jwk, n: 'AQAB', kid: 'w' },
    { ...good.jwk, kid: 'short', x: 'AA' },
    { ...good.jwk, kid: 'secret', d: good.jwk.x },
    { kty: 'oct', k: 'AAAA', kid: 'symmetric' },
    { ...good.jwk, kid: 'curve', alg: undefined, crv: 'secp256k1' },
    { ...weak.jwk, kid: 'for encryption', use: 'enc' },
    ...many,
  )
  const { list, logs, logged } = await startAccepting(t, issuer.env)
  t.equal((await list(await good.sign())).status, 200)
  // Of many keys the first are taken.
  const last = await good.sign({}, { kid: '999' })
  await until(async () => (await list(last)).status === 401)
  await logs(/; 946 more than 64".*"some keys of OIDC_ISSUER are not used/)
  t.ok(logged().match(/some keys of OIDC_ISSUER are not used/g)?.length)
})

test('keys are not taken from where the issuer redirects to, however good they are there', async (t) => {
  const issuer = await startIssuer(t)
  const { sign, jwk } = await issuer.makeSigner('one')
  const token = await sign()
  for (const env of [{}, { OIDC_JWKS_URL: `http://127.0.0.1:${issuer.port}/keys` }]) {
    let redirected = 0
    issuer.answer(({ url = '' }, response) => {
      if (url.endsWith('/good/keys')) response.end(JSON.stringify({ keys: [jwk] }))
      else if (url.includes('/good/'))
        response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/good/keys` }))
      else {
        redirected++
        response.writeHead(302, { location: `/good${url}` }).end()
      }
    })
    const { list, logs } = await startAccepting(t, { ...issuer.env, ...env })
    await logs(/ answered 302".*"the keys of OIDC_ISSUER cannot be loaded"/)
    t.equal((await list(token)).status, 503)
    t.ok(redirected > 0)
  }
})

test('a token that came when too many waited is accepted when it comes again', async (t) => {
  const issuer = await startIssuer(t)
  const { sign, jwk } = await issuer.makeSigner('one')
  issuer.publish(jwk)
  const released = Promise.withResolvers<void>()
  issuer.answer(async (request, response) => {
    await released.promise
    const document = { issuer: issuer.url, jwks_uri: `${issuer.url}/keys` }
    response.end(JSON.stringify(request.url?.endsWith('/keys') ? { keys: [jwk] } : document))
  })
  const { url, list } = await startAccepting(t, issuer.env)
  const port = Number(new URL(url).port)
  const connections = 2 * Math.ceil(maxWaitingJwts / requestsPerConnection)
  const tokens = await Promise.all(
    Array.from({ length: connections * requestsPerConnection }, (_, n) => sign({ jti: `${n}` })),
  )
  const refused: string[] = []
  const met = new EventEmitter()
  const flood = async (some: string[]) => {
    const bytes = some.map((token) => compose({ headers: { Authorization: `Bearer ${token}` } }))
    const answers = await exchange(port, Buffer.concat(bytes), some.length)
    answers.forEach(({ text }, n) => {
      if (text.includes('/problems/overloaded')) refused.push(some[n] as string)
    })
    if (refused.length > 0) met.emit('overload')
  }
  await until(async () => {
    const overload = once(met, 'overload')
    const all = Array.from({ length: connections }, (_, n) =>
      flood(tokens.slice(n * requestsPerConnection, (n + 1) * requestsPerConnection)),
    )
    await Promise.race([overload, Promise.all(all)])
    return refused.length > 0
  })
  released.resolve()
  const [token = ''] = refused
  await until(async () => (await list(token)).status === 200)
})

test('those who wait to be judged, or for the keys of an issuer that hangs, are bounded, and share one verdict', async (t) => {
  const issuer = await startIssuer(t)
  const { sign, jwk } = await issuer.makeSigner('one')
  issuer.publish(jwk)
  const token = await sign()
  const of = issuerOf(readConfig(issuer.env)) as Issuer
  const logger = pino({ level: 'silent' })
  const verify = acceptIssuer(of, { logger, meter: noMeter })
  const [one, other] = [verify(token, false), verify(token, true)]
  t.match(await one, { id: 'oidc:gardener' })
  t.equal(await one, await other)
  const leftMs = 5000
  const exp = (Date.now() + leftMs) / 1000 - toleranceS
  // Whole milliseconds: both clocks may be off by one.
  const latestMs = performance.now() + leftMs + 1
  const ending = await verify(await sign({ exp }), false)
  t.ok(Number(ending?.untilMs) <= latestMs, 'a verdict ends with its token')
  const again = await sign({ jti: 'again' })
  const junk = Array.from({ length: maxWaitingJwts + verificationsAtOnce + 1 }, () =>
    verify(`${token.slice(0, token.lastIndexOf('.'))}.${randomBytes(64).toString('base64url')}`, false),
  )
  const known = verify(again, true)
  const judged = await Promise.allSettled(junk)
  t.match(judged.at(-1), { status: 'rejected', reason: { outcome: 'overloaded' } })
  t.match(await known, { id: 'oidc:gardener' }, 'who was valid before does not wait behind others')
  issuer.answer(() => {})
  const keys = new IssuerKeys(of, logger)
  const waits = Array.from({ length: maxWaitingJwts + 1 }, () => keys.find({ alg: 'ES256' }, ''))
  const settled = await Promise.allSettled(waits)
  t.match(settled.at(-1), { status: 'rejected', reason: { outcome: 'overloaded' } })
  t.match(settled[0], { status: 'fulfilled', value: 'unavailable' })
})

test('what the documents say, and what the log does not', async (t) => {
  const issuer = await startIssuer(t)
  const { sign, jwk } = await issuer.makeSigner('one')
  issuer.publish(jwk)
  const { url, logged } = await spawnAccepting(t, { ...issuer.env, ...unhurried, BASE_PATH: '/v1' })
  const metadata = await request(`${url}/.well-known/oauth-protected-resource/store`)
  t.same(metadata.json(), {
    resource: audience,
    authorization_servers: [issuer.url],
    scopes_supported: ['plants:read', 'plants:write'],
    bearer_methods_supported: ['header'],
  })
  const contract = (await request(`${url}/v1/openapi.json`)).json() as Record<string, never>
  t.match(contract, { security: [{ bearer: [] }, { oidc: [] }] })
  const token = await sign({ sub: 'a "quoted\\" one' })
  await request(`${url}/v1/plants?token=${token}`)
  const headers = { authorization: `Bearer ${token}` }
  await until(async () => (await request(`${url}/v1/plants`, { headers })).status === 200)
  const owner = JSON.stringify({ token: 'oidc:a "quoted\\" one' }).slice(1, -1)
  await until(() => logged().includes(owner))
  t.notMatch(logged(), token.slice(0, 60))
})

test('in a log of text an owner is one word, or quoted', async (t) => {
  const issuer = await startIssuer(t)
  const { sign, jwk } = await issuer.makeSigner('one')
  issuer.publish(jwk)
  const { list, logs } = await spawnAccepting(t, { ...issuer.env, ...unhurried, LOG_FORMAT: 'text' })
  for (const sub of ['gardener', 'x 10.0.0.1 y'])
    await until(async () => (await list(await sign({ sub }))).status === 200)
  await logs(/ 200 .* oidc:gardener 127\.0\.0\.1 /)
  await logs(/ 200 .* "oidc:x 10\.0\.0\.1 y" 127\.0\.0\.1 /)
})

test('ACCESS_TOKENS come first, whatever their form; each refusal is counted by its reason', async (t) => {
  const issuer = await startIssuer(t)
  const { sign, jwk } = await issuer.makeSigner('one')
  issuer.publish(jwk)
  const own = await sign({ exp: 1 })
  const service = await startAccepting(t, { ...issuer.env, ACCESS_TOKENS: own })
  t.equal((await service.list(own)).status, 200)
  const expired = await sign({ exp: 2 })
  for (let n = 0; n < 3; n++) t.equal((await service.list(expired)).status, 401)
  const spaced = `${base64url('{\n"alg":"none"}')}.YQ.YQ`
  for (const junk of ['junk', 'a.b.c', makeToken().token, spaced])
    t.equal((await service.list(junk)).status, 401)
  t.equal((await service.list(`${own}=`)).status, 401)
  const text = await service.metrics.write()
  const counts = Object.fromEntries(
    [...text.matchAll(/plant_store_oidc_refused_total\{reason="(\w+)"\} (\d+)/g)].map(([, reason, count]) => [
      reason,
      Number(count),
    ]),
  )
  t.same(Object.keys(counts), Object.keys(reasons))
  t.same(
    Object.entries(counts).filter(([, count]) => Number(count) > 0),
    [
      ['form', 1],
      ['algorithm', 1],
      ['time', 3],
    ],
  )
})

test('the metadata stands at the path of the audience, whatever is in it', async (t) => {
  const issuer = await startIssuer(t)
  for (const [aud, path] of [
    ['https://plants.example', ''],
    ['https://plants.example/', ''],
    ['HTTPS://plants.example/a:b/c%20d/', '/a:b/c%20d/'],
    ['plants,https://plants.example/x', '/x'],
    ['https://plants.example/x?tenant=1', '/x?tenant=1'],
    ['https://plants.example?tenant=1', '?tenant=1'],
  ]) {
    const { url } = await startAccepting(t, { ...issuer.env, OIDC_AUDIENCE: aud, BASE_PATH: '/v1' })
    const place = `/.well-known/oauth-protected-resource${path}`
    const metadata = await request(`${url}${place}`, { headers: { authorization: '' } })
    t.equal(metadata.status, 200, String(aud))
    t.equal((metadata.json() as { resource: string }).resource, String(aud).split(',').at(-1))
    const refused = await request(`${url}/v1/plants`, { headers: { authorization: '' } })
    t.equal(
      refused.headers.get('www-authenticate'),
      `Bearer realm="plant-store", resource_metadata="https://plants.example${place}"`,
    )
  }
  const { url } = await startAccepting(t, { ...issuer.env, OIDC_AUDIENCE: 'plants' })
  t.equal((await request(`${url}/.well-known/oauth-protected-resource`)).status, 404)
  const bare = await request(`${url}/plants`, { headers: { authorization: '' } })
  t.equal(bare.headers.get('www-authenticate'), 'Bearer realm="plant-store"')
})

test('settings that do not go together are one line; token explain says why', async (t) => {
  const issuer = await startIssuer(t)
  const { sign, jwk } = await issuer.makeSigner('one')
  issuer.publish(jwk)
  for (const env of [
    { OIDC_ISSUER: issuer.url },
    { OIDC_AUDIENCE: 'a' },
    { OIDC_ISSUER: 'http://example.org', OIDC_AUDIENCE: 'a' },
    { ...issuer.env, OIDC_TOKEN_TYPE: 'x' },
    { ...issuer.env, OIDC_JWKS_URL: 'ftp://a' },
    { ...issuer.env, OIDC_SCOPE_PREFIX: 'a b' },
    { ...issuer.env, OIDC_SCOPE_CLAIM: ',' },
    { ...issuer.env, OIDC_AUDIENCE: ' , ' },
    { OIDC_JWKS_URL: `${issuer.url}/keys` },
    { OIDC_SCOPE_PREFIX: 'x:' },
    ...[' ', 'x y', '?a', '#a'].map((end) => ({ ...issuer.env, OIDC_ISSUER: `${issuer.url}${end}` })),
    { ...issuer.env, OIDC_ISSUER: 'https://a:correct-horse@issuer.example' },
    { ...issuer.env, OIDC_ISSUER: 'https://a.example,https://b.example' },
  ]) {
    const { code, stderr } = await runCommand(['serve'], env)
    t.equal(code, 1)
    t.match(stderr, /^plant-store: [^\n]*OIDC_[^\n]*\n$/)
    t.notMatch(stderr, 'correct-horse')
  }
  const explain = (token: string) => {
    const env = { ...issuer.env, ...unhurried, input: `${token}\n` }
    return runProgram(t, process.execPath, [cli, 'token', 'explain'], env)
  }
  /** A slow machine may have no keys in the time that they have. */
  const judge = async (token: string) => {
    for (let left = 5; ; left--) {
      const ran = await explain(token)
      if (left === 0 || !/\(unavailable\)/.test(ran.stdout)) return ran
    }
  }
  t.match(await judge(await sign({ scope: '' })), { code: 0, stdout: /^valid; it grants nothing: / })
  t.match(await runCommand(['token', 'explain']), {
    code: 1,
    stderr: /OIDC_ISSUER is not set/,
  })
  t.match(await judge(await sign()), {
    code: 0,
    stdout: /^valid; it grants plants:read and plants:write\n$/,
  })
  const unknown = await judge(await sign({}, { kid: 'two' }))
  t.match(unknown, { code: 1, stdout: /^refused \(key\): no key of the issuer is the one/ })
  const expired = await sign({ exp: 1 })
  const refused = await explain(expired)
  t.match(refused, { code: 1, stdout: /^refused \(time\): it has expired/ })
  t.notMatch(refused.stdout + refused.stderr, expired.slice(0, 40))
  issuer.answer((_request, response) => void response.writeHead(500).end())
  t.match(await explain(await sign()), {
    code: 1,
    stdout: /^refused \(unavailable\): /,
    stderr: /^plant-store: warning: the keys of OIDC_ISSUER cannot be loaded: .*\n$/,
  })
  for (const args of [['revoke', expired], ['create', '--name', expired], [expired], [`--${expired}`]]) {
    const { stdout, stderr } = await runCommand(['token', ...args])
    t.notMatch(stdout + stderr, expired.slice(0, 40), args.join(' ').slice(0, 20))
  }
  const warned = await runCommand(['config'], { ...issuer.env, OIDC_AUDIENCE: 'plants,account' })
  t.match(warned, { code: 0, stderr: /warning: OIDC_AUDIENCE: account / })
})
