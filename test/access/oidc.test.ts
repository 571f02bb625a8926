// JWTs of an issuer: which are accepted, and how the others are refused.
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { noMeter } from '../../src/metrics.ts'
import { settingRows } from '../../src/settings.ts'
import { makeToken } from '../../src/tokens/format.ts'
import { makeJwtVerifier, type Reason, readJwt, reasons } from '../../src/tokens/issued-tokens.ts'
import { silent } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { audience, issuerIn, startAccepting, startIssuer, startSigning } from './issuer.ts'
import { ask } from './start.ts'

const base64url = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

test('a token of the issuer is accepted with each algorithm, for its scopes', async (t) => {
  const issuer = await startIssuer(t)
  const digests = ['256', '384', '512']
  const algorithms = [...['RS', 'PS', 'ES'].flatMap((kind) => digests.map((bits) => kind + bits)), 'EdDSA']
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
  const challenge = `Bearer realm="plant-store", error="insufficient_scope", scope="plants:write", ${metadata}`
  t.equal(refused.headers.get('www-authenticate'), challenge)
  for (const claim of ['scp', 'permissions'])
    t.equal((await list(await sign({ scope: '', [claim]: ['plants:read'] }))).status, 200, claim)
  t.equal((await list(await sign({ scope: 'plants:*' }))).status, 403)
  for (const aud of [[audience], ['other', audience]]) t.equal((await list(await sign({ aud }))).status, 200)
})

test('forged and malformed tokens are refused, and no URL in them is fetched', async (t) => {
  const issuer = await startIssuer(t)
  const [good, other] = [await issuer.makeSigner('good'), await issuer.makeSigner('other')]
  issuer.publish(good.jwk, (await issuer.makeSigner('rsa', 'RS256')).jwk)
  const { list } = await startAccepting(t, issuer.env, { limitMs: 2000, pauseMs: 3000 })
  const token = await good.sign()
  t.equal((await list(token)).status, 200)
  const [head, body, signature] = token.split('.') as [string, string, string]
  const header = { alg: 'ES256', kid: 'good', typ: 'at+jwt' }
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
  const raw = (text: string) => `${head}.${base64url(text)}.${signature}`
  const odd = {
    'no signature': `${head}.${body}.`,
    'two parts': `${head}.${body}`,
    'four parts': `${token}.x`,
    'an algorithm that does not fit the key': `${base64url({ ...header, alg: 'ES384' })}.${body}.${signature}`,
    'an unknown key': await other.sign(),
    'an unknown key with our kid': await other.sign({}, { kid: 'good' }),
    'an embedded key': await other.sign({}, { jwk: other.jwk, kid: 'good' }),
    jku: await other.sign({}, { jku: `http://127.0.0.1:${issuer.port}/evil`, kid: 'good' }),
    'kid a path': await other.sign({}, { kid: '../../dev/null' }),
    'a zero signature': `${head}.${body}.${Buffer.alloc(64).toString('base64url')}`,
    'a changed claim': `${head}.${base64url({ ...claims, sub: 'admin' })}.${signature}`,
    padded: `${token}=`,
    'standard base64': token.replace(/[-_]/g, '+').concat('/'),
    'base64url that is not canonical': `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'z'}`,
    'a header that is not JSON': `${base64url('{')}.${body}.${signature}`,
    'a header that is a list': `${base64url([])}.${body}.${signature}`,
    'claims that are not JSON': raw('{'),
    'claims that are a list': raw('[]'),
    'claims that are not UTF-8': `${head}.${Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')}.${signature}`,
    huge: await good.sign({ padding: 'x'.repeat(8000) }),
    'exp 1e400': raw(JSON.stringify(claims).replace(/"exp":\d+/, '"exp":1e400')),
  }
  const [before, startMs] = [issuer.fetches, performance.now()]
  const waiting: string[] = []
  // A token with an unknown kid gets 503 until the keys have been loaded once more.
  for (const text of Object.values(odd)) if ((await list(text)).status === 503) waiting.push(text)
  t.ok(waiting.length < 8, `${waiting.length} wait`)
  const pauses = Math.ceil((performance.now() - startMs) / 3000)
  t.ok(issuer.fetches - before <= 2 * pauses, 'at most one load per pause')
  for (const text of waiting) await until(async () => (await list(text)).status === 401)
  for (const [title, text] of Object.entries(odd)) {
    const { status, headers } = await list(text)
    t.equal(status, 401, title)
    t.match(headers.get('www-authenticate'), 'error="invalid_token"', title)
  }
  const make = (n: number) => raw(JSON.stringify({ ...claims, x: 'x'.repeat(5800 + n) }))
  const sized = Array.from({ length: 99 }, (_, n) => [make(n), `${make(n)}AA`]).flat()
  t.ok(sized.some(({ length }) => length === 8193))
  const fits = sized.filter((text) => readJwt(text, issuerIn(issuer.env)) !== 'form')
  t.equal(Math.max(...fits.map(({ length }) => length)), 8192)
  const late = await good.sign({ exp: Date.now() / 1000 - 20.5 })
  t.equal((await list(late)).status, 200, 'within the tolerance, with a fraction')
  t.equal((await list(await good.sign({}, { typ: 'application/AT+JWT' }))).status, 200)
})

test('a token is verified again after a minute, because the issuer may withdraw its key', async (t) => {
  const { issuer, sign } = await startSigning(t)
  const verify = makeJwtVerifier(issuerIn(issuer.env), { logger: silent, meter: noMeter })
  const judge = async (lastsS: number) => {
    const grant = await verify(await sign({ exp: Math.floor(Date.now() / 1000) + lastsS }))
    return Number(grant?.untilMs) - performance.now()
  }
  t.ok((await judge(36_000)) <= 60_000)
  const leftMs = await judge(-10)
  t.ok(leftMs <= 20_000 && leftMs > 0, 'at the latest when it expires, plus the tolerance')
})

test('OIDC_TOKEN_TYPE, OIDC_SCOPE_PREFIX and OIDC_SCOPE_CLAIM select which tokens and scopes are accepted', async (t) => {
  const issuer = await startIssuer(t)
  const signer = await issuer.makeSigner('one')
  issuer.publish({ ...signer.jwk, kid: undefined, alg: undefined })
  const { list, url } = await startAccepting(t, {
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
  const metadata = await ask(`${url}/.well-known/oauth-protected-resource/store`, undefined)
  t.match(metadata.text, '"scopes_supported":["api://plants/plants:read"')
})

test('refuses a header that starts with white space, which the masks of the log would miss', async (t) => {
  const { issuer, sign } = await startSigning(t)
  const { list } = await startAccepting(t, issuer.env)
  const headers = { eyAi: '{ "alg":"ES256"', ewog: '{\n "alg":"ES256"', IHsi: ' {"alg":"ES256"' }
  for (const [begin, header] of Object.entries(headers)) {
    const [, ...rest] = (await sign()).split('.')
    const token = [base64url(`${header},"kid":"one","typ":"at+jwt"}`), ...rest].join('.')
    t.match(token, new RegExp(`^${begin}`))
    t.equal((await list(token)).status, 401, begin)
    t.equal(readJwt(token, issuerIn(issuer.env)), 'header', begin)
  }
})

type Change = Record<string, unknown>

test('refuses a missing, malformed or wrong claim or header, and names the reason', async (t) => {
  const { issuer, sign } = await startSigning(t)
  const { list, refused, lines } = await startAccepting(t, issuer.env)
  const { url: iss } = issuer
  const nowS = Date.now() / 1000
  const [, ...rest] = (await sign()).split('.')
  const forge = (header: Change) =>
    [base64url({ alg: 'ES256', kid: 'one', typ: 'at+jwt', ...header }), ...rest].join('.')
  const table: [Reason, make: (change: Change) => string | Promise<string>, Change[]][] = [
    ['claims', sign, [{ iss: undefined }, { aud: undefined }, { exp: undefined }, { sub: undefined }]],
    ['claims', sign, [{ iss: 7 }, { aud: [7] }, { exp: '1' }, { sub: 7 }, { nbf: '0' }, { iat: null }]],
    ['claims', sign, [{ iss: [iss] }, { sub: '' }, { sub: 'ä' }, { sub: 'a\nb' }, { sub: 'x'.repeat(256) }]],
    ['time', sign, [{ exp: 0 }, { exp: nowS - 31 }, { nbf: nowS + 60 }, { iat: nowS + 60 }]],
    ['issuer', sign, [{ iss: 'https://other.example' }, { iss: `${iss}/` }, { iss: iss.toUpperCase() }]],
    ['audience', sign, [{ aud: 'other' }, { aud: `${audience}/` }]],
    ['kind', sign, [{ cnf: {} }, { nonce: 'x' }, { at_hash: 'x' }, { c_hash: 'x' }, { events: {} }]],
    ['header', forge, [{ kid: 7 }, { kid: 'k'.repeat(257) }]],
    ['header', forge, [{ crit: ['exp'] }, { b64: true }, { zip: 'DEF' }]],
    ['algorithm', forge, [{ alg: 'none' }, { alg: 'HS256' }, { alg: undefined }, { alg: ['ES256'] }]],
    ['type', forge, [{ typ: 'JWT' }, { typ: undefined }, { typ: 1 }]],
  ]
  for (const [reason, make, changes] of table)
    for (const change of changes) {
      const before = Number(refused()[reason])
      t.equal((await list(await make(change))).status, 401, JSON.stringify(change))
      t.equal(refused()[reason], before + 1, JSON.stringify(change))
      t.match(lines.at(-1), { level: 20, reason, msg: 'a JWT was refused' })
    }
})

test('ACCESS_TOKENS may look like a JWT, and refusals are counted by reason', async (t) => {
  const { issuer, sign } = await startSigning(t)
  const own = await sign({ exp: 1 })
  const { list, refused } = await startAccepting(t, { ...issuer.env, ACCESS_TOKENS: own })
  t.equal((await list(own)).status, 200)
  for (let n = 0; n < 3; n++) t.equal((await list(await sign({ exp: 2, jti: `${n}` }))).status, 401)
  const none = `${base64url('{"alg":"none"}')}.YQ.YQ`
  for (const junk of ['junk', 'a.b.c', makeToken().token, none, `${own}=`])
    t.equal((await list(junk)).status, 401)
  t.same(Object.keys(refused()), reasons)
  const counts = Object.entries(refused()).filter(([, count]) => count > 0)
  t.same(Object.fromEntries(counts), { form: 1, algorithm: 1, time: 3 })
})

test('the metadata of the resource is served at the path of the audience', async (t) => {
  const issuer = await startIssuer(t)
  for (const [aud, path] of [
    ['https://plants.example', ''],
    ['https://plants.example/', ''],
    ['HTTPS://plants.example/a:b/c%20d/', '/a:b/c%20d/'],
    ['plants,https://plants.example/x', '/x'],
    ['https://plants.example/x?tenant=1', '/x?tenant=1'],
    ['https://plants.example/*/b', '/*/b'],
    ['https://plants.example/a%2fb', '/a%2fb'],
  ] as const) {
    const { url } = await startAccepting(t, { ...issuer.env, OIDC_AUDIENCE: aud, BASE_PATH: '/v1' })
    const place = `/.well-known/oauth-protected-resource${path}`
    const metadata = await ask(`${url}${place}`, undefined)
    t.equal((await ask(`${url}/.well-known/oauth-protected-resource/other`, undefined)).status, 404)
    t.equal(metadata.status, 200, aud)
    t.same(JSON.parse(metadata.text), {
      resource: aud.split(',').at(-1),
      authorization_servers: [issuer.url],
      scopes_supported: ['plants:read', 'plants:write'],
      bearer_methods_supported: ['header'],
    })
    t.equal(
      (await ask(`${url}/v1/plants`, undefined)).headers.get('www-authenticate'),
      `Bearer realm="plant-store", resource_metadata="https://plants.example${place}"`,
    )
  }
  const { url, list } = await startAccepting(t, { ...issuer.env, OIDC_AUDIENCE: 'plants' })
  t.equal((await ask(`${url}/.well-known/oauth-protected-resource`, undefined)).status, 404)
  t.equal((await list(undefined)).headers.get('www-authenticate'), 'Bearer realm="plant-store"')
})

test('docs/secure.md has the same reasons as the code, and describes every setting', async (t) => {
  const page = readFileSync(new URL('../../docs/secure.md', import.meta.url), 'utf8')
  const [, rows = ''] = page.split('| `reason` | What is wrong |\n|---|---|\n')
  t.same(rows.split('\n\n', 1)[0]?.match(/(?<=^\| `)\w+/gm), reasons)
  const names = settingRows.map(({ name }) => name).filter((name) => name.startsWith('OIDC_'))
  for (const name of names) t.match(page, `| \`${name}\` |`)
  t.ok(names.length > 0)
})
