// RATE_LIMIT and AUTH_FAILURE_LIMIT over HTTP: who is refused, with which fields, and who is not.
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'tap'
import { examples } from '../../schemas/examples.ts'
import { toSeconds } from '../../src/http/access/rate-limits.ts'
import { makeToken } from '../../src/tokens/format.ts'
import { Tokens } from '../../src/tokens/tokens.ts'
import { sqlite } from '../support/engines.ts'
import { openFailing, type StoreFault } from '../support/failing-store.ts'
import { assertProblem } from '../support/problem.ts'
import { type Answer, request, startApp, startThreads, token } from '../support/service.ts'
import { until } from '../support/until.ts'
import { compose, exchange, type Parts, readAnswers, send, type WireAnswer } from '../support/wire.ts'

const plant = { name: 'Alder', tag: 'Alnus' }
const bearer = (text: string) => ({ authorization: `Bearer ${text}` })
const fields = ({ headers }: { headers: Headers }) => [
  headers.get('ratelimit-policy'),
  headers.get('ratelimit'),
]
/** An hour: what a test uses up does not come back while it runs. */
const three = '3/h'

test('a token has its requests, and no more until time has passed', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t), { env: { RATE_LIMIT: three } })
  const policy = '"default";q=3;w=3600'
  const answers: Answer[] = []
  for (const body of [undefined, plant, undefined]) answers.push(await request(`${url}/plants`, { body }))
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200],
  )
  t.match(answers.map(fields), [
    [policy, /^"default";r=2;t=(1200|11\d\d)$/],
    [policy, /^"default";r=1;t=(1200|11\d\d)$/],
    [policy, /^"default";r=0;t=(1200|11\d\d)$/],
  ])
  const refused = await request(`${url}/plants`)
  t.match(assertProblem(t, refused, 429), examples.TooManyRequests.rate)
  t.match(fields(refused), [policy, /^"default";r=0;t=(1200|11\d\d)$/])
  t.equal(refused.headers.get('retry-after'), /t=(\d+)/.exec(String(fields(refused)[1]))?.[1])
  t.equal(refused.headers.get('www-authenticate'), null)
})

test('seconds to wait are whole, not too few, and none more for a rounded sum', async (t) => {
  const cases = [0, 1, 1000, 1000.0000001, 1000.1, 1_200_000.0000002]
  t.same(cases.map(toSeconds), [1, 1, 1, 1, 2, 1200])
})

test('whoever waits as long as Retry-After says is served again', async (t) => {
  const { port } = await startApp(t, await sqlite.createDatabase(t), { env: { RATE_LIMIT: '1/s' } })
  let refused: WireAnswer | undefined
  // Two at once: one of them is too many, unless the machine is held up between them.
  for (let n = 0; refused?.status !== 429 && n < 100; n++)
    refused = (await exchange(port, Buffer.concat([compose(), compose()]), 2)).at(-1)
  assertProblem(t, refused as WireAnswer, 429)
  t.equal(refused?.headers.get('retry-after'), '1')
  let status = 429
  await until(async () => {
    status = (await send(port, compose())).status
    return status !== 429
  })
  t.equal(status, 200)
})

test('without RATE_LIMIT no answer speaks of one', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t))
  for (let n = 0; n < 20; n++) {
    const answer = await request(`${url}/plants`)
    t.equal(answer.status, 200)
    t.same(fields(answer), [null, null])
  }
})

test('tokens have their requests each, those of ACCESS_TOKENS too', async (t) => {
  const env = { RATE_LIMIT: three, ACCESS_TOKENS: 'one-of-our-own-tokens,another-of-our-own' }
  const { url, store } = await startApp(t, await sqlite.createDatabase(t), { env })
  const tokens = new Tokens(store.tokens)
  const all = [
    'one-of-our-own-tokens',
    'another-of-our-own',
    await tokens.create({ name: 'a' }),
    await tokens.create({ name: 'b' }),
  ]
  for (const text of all) {
    const ask = async () => (await request(`${url}/plants`, { headers: bearer(text) })).status
    t.same([await ask(), await ask(), await ask(), await ask()], [200, 200, 200, 429])
  }
})

test('a request that is refused changes nothing, and nothing of its body is read', async (t) => {
  const { port, url, store } = await startApp(t, await sqlite.createDatabase(t), {
    env: { RATE_LIMIT: three },
  })
  for (let n = 0; n < 3; n++) await request(`${url}/plants`)
  assertProblem(t, await request(`${url}/plants`, { body: plant }), 429)
  for (const Expect of [undefined, '100-continue']) {
    // The body never comes, and an answer that asked for it would be the first here.
    const head = compose({ body: '', headers: { 'Content-Length': '10000', Expect } })
    assertProblem(t, await send(port, head), 429)
  }
  t.equal((await store.log.head()).position, 0)
})

test('a request whose token is looked at again, as its body came late, counts once', async (t) => {
  const { store } = await openFailing(t)
  let lookUps = 0
  const notes: typeof store.tokens = {
    ...store.tokens,
    find(ids) {
      lookUps++
      return store.tokens.find(ids)
    },
  }
  const env = { RATE_LIMIT: '1000/h' }
  const { url, port } = await startApp(t, '', { store: { ...store, tokens: notes }, env })
  const tokens = new Tokens(store.tokens)
  const [slow, other] = [await tokens.create({ name: 'slow' }), await tokens.create({ name: 'other' })]
  const body = JSON.stringify(plant)
  const bytes = compose({ body, headers: { Authorization: `Bearer ${slow}` } })
  const socket = connect(port, '127.0.0.1').setNoDelay()
  t.teardown(() => socket.destroy())
  socket.write(bytes.subarray(0, -1))
  await until(() => lookUps === 1)
  // Of two verdicts the later one has run out when its token is looked up again.
  await until(async () => {
    await request(`${url}/plants?limit=0`, { headers: bearer(other) })
    return lookUps === 3
  })
  socket.write(bytes.subarray(-1))
  const [answer] = readAnswers(String((await once(socket, 'data'))[0]))
  t.match(answer, { status: 200 })
  t.match(fields(answer as WireAnswer)[1], /^"default";r=999;/)
  t.match(fields(await request(`${url}/plants`, { headers: bearer(slow) }))[1], /^"default";r=998;/)
})

test('what has no valid token, or no route, costs nobody a request; all else does', async (t) => {
  const { url, store } = await startApp(t, await sqlite.createDatabase(t), {
    env: { RATE_LIMIT: '10/h', CORS_ORIGIN: '*' },
  })
  const text = await new Tokens(store.tokens).create({ name: 'reader', scopes: ['plants:read'] })
  const ask = (method: string, path = '/plants', more = {}) =>
    request(`${url}${path}`, { method, headers: { ...bearer(text), ...more } })
  const preflight = { origin: 'https://garden.test', 'access-control-request-method': 'GET' }
  const free = [
    await ask('OPTIONS'),
    await ask('OPTIONS', '/plants', preflight),
    await ask('GET', '/nothing'),
    await ask('PUT'),
    await ask('GET', '/docs'),
    await ask('GET', '/plants', bearer(makeToken().token)),
  ]
  t.same(
    free.map(({ status }) => status),
    [204, 204, 404, 405, 200, 401],
  )
  for (const answer of free) t.same(fields(answer), [null, null])
  const counted = [
    await ask('GET'),
    await ask('HEAD'),
    await ask('GET', '/plants', { 'if-none-match': '*' }),
    await ask('GET', '/plants?limit=x'),
    await ask('POST'),
  ]
  t.same(
    counted.map(({ status }) => status),
    [200, 200, 304, 400, 403],
  )
  t.same(
    counted.map((answer) => /^"default";r=(\d+);t=\d+$/.exec(String(fields(answer)[1]))?.[1]),
    ['9', '8', '7', '6', '5'],
  )
  t.match(counted[0]?.headers.get('access-control-expose-headers'), 'RateLimit, RateLimit-Policy')
})

/** Each answer that a request with a valid token may have. Faults are those of the store. */
const countedAnswers: [status: number, parts: Parts, fault?: StoreFault][] = [
  [304, { headers: { 'If-None-Match': '*' } }],
  [400, { target: '/plants?limit=x' }],
  [403, { headers: { Authorization: 'other' } }],
  [412, { headers: { 'If-Match': '"x"' } }],
  [500, {}, 'broken'],
  [503, {}, 'unread'],
]
const countedAdditions: typeof countedAnswers = [
  [200, { body: '{"name":"a","tag":"","id":1}' }],
  [400, { body: '{}' }],
  [403, { body: '{}', headers: { Authorization: 'other' } }],
  [409, { body: '{"name":"b","tag":"","id":1}' }],
  [412, { body: JSON.stringify(plant), headers: { 'If-Match': '*' } }],
  [413, { body: ' '.repeat(20_000) }],
  [415, { body: 'a', headers: { 'Content-Type': 'text/plain' } }],
  [500, { body: JSON.stringify(plant) }, 'broken'],
  [503, { body: JSON.stringify(plant) }, 'nothing-added'],
]

test('every answer that counts says how many are left', async (t) => {
  const { store, faults } = await openFailing(t)
  const { port } = await startApp(t, '', { store, env: { RATE_LIMIT: '1000/h' } })
  const tokens = new Tokens(store.tokens)
  const others = {
    GET: await tokens.create({ name: 'writer', scopes: ['plants:write'] }),
    HEAD: await tokens.create({ name: 'writer too', scopes: ['plants:write'] }),
    POST: await tokens.create({ name: 'reader', scopes: ['plants:read'] }),
  }
  const ask = async (
    method: keyof typeof others,
    [status, parts, fault]: (typeof countedAnswers)[number],
  ) => {
    if (fault) faults.push(fault)
    const other = parts.headers?.Authorization && { Authorization: `Bearer ${others[method]}` }
    const answer = await send(port, compose({ ...parts, method, headers: { ...parts.headers, ...other } }))
    t.equal(answer.status, status, `${method} ${status}`)
    t.match(fields(answer), ['"default";q=1000;w=3600', /^"default";r=9\d\d;t=\d$/], `${method} ${status}`)
  }
  for (const counted of countedAdditions) await ask('POST', counted)
  for (const method of ['GET', 'HEAD'] as const)
    for (const counted of [[200, {}] as [number, Parts], ...countedAnswers]) await ask(method, counted)
  t.same(faults, [])
})

test('GET, HEAD and POST past the limit are 429', async (t) => {
  const { port } = await startApp(t, await sqlite.createDatabase(t), { env: { RATE_LIMIT: '1/h' } })
  t.equal((await send(port, compose())).status, 200)
  for (const parts of [{}, { method: 'HEAD' }, { body: JSON.stringify(plant) }] as Parts[]) {
    const answer = await send(port, compose(parts))
    t.equal(answer.status, 429)
    t.ok(answer.headers.get('retry-after'))
    t.match(fields(answer), ['"default";q=1;w=3600', /^"default";r=0;t=\d+$/])
    if (parts.method === 'HEAD') t.equal(answer.text, '')
  }
})

test('failed authentications of an address are limited, whatever they are', async (t) => {
  const database = await sqlite.createDatabase(t)
  const { port, url, metrics } = await startThreads(t, database, { THREADS: '1', AUTH_FAILURE_LIMIT: '4/h' })
  const failing = [undefined, 'Basic eDp5', 'Bearer x', `Bearer ${makeToken().token}`]
  const ask = (Authorization: string | undefined) => send(port, compose({ headers: { Authorization } }))
  for (const credentials of failing) assertProblem(t, await ask(credentials), 401)
  for (const credentials of failing) {
    const refused = await ask(credentials)
    t.match(assertProblem(t, refused, 429), examples.TooManyRequests.failures)
    t.match(refused.headers.get('retry-after'), /^(900|8\d\d)$/)
    t.same(fields(refused), [null, null])
    t.equal(refused.headers.get('www-authenticate'), null)
  }
  for (const method of ['HEAD', 'POST'])
    t.equal((await send(port, compose({ method, headers: { Authorization: undefined } }))).status, 429)
  t.equal((await request(`${url}/plants`)).status, 200)
  t.equal((await request(`${url}/nothing`, { headers: bearer('x') })).status, 404)
  const counted = /^plant_store_refused_total\{reason="(?:auth|rate)"\} \d+$/gm
  t.strictSame((await metrics.write()).match(counted)?.toSorted(), [
    'plant_store_refused_total{reason="auth"} 10',
    'plant_store_refused_total{reason="rate"} 0',
  ])
})

test('a token without the scope is no failure', async (t) => {
  const { url, store } = await startApp(t, await sqlite.createDatabase(t), {
    env: { AUTH_FAILURE_LIMIT: '1/h' },
  })
  const reader = await new Tokens(store.tokens).create({ name: 'reader', scopes: ['plants:read'] })
  for (let n = 0; n < 5; n++)
    t.equal((await request(`${url}/plants`, { body: plant, headers: bearer(reader) })).status, 403)
})

test('behind a proxy that is trusted each client has failures of its own', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t), {
    env: { AUTH_FAILURE_LIMIT: '1/h', TRUST_PROXY: 'loopback' },
  })
  const fail = async (client: string) =>
    (await request(`${url}/plants`, { headers: { ...bearer('x'), 'x-forwarded-for': client } })).status
  t.same([await fail('192.0.2.1'), await fail('192.0.2.1'), await fail('192.0.2.2')], [401, 429, 401])
  t.same(
    [await fail('2001:db8::1'), await fail('2001:db8::2'), await fail('2001:db8:0:1::1')],
    [401, 429, 401],
  )
})

test('an address that a proxy names with a port is that address', async (t) => {
  const env = { AUTH_FAILURE_LIMIT: '1/h', TRUST_PROXY: '127.0.0.1,192.0.2.9' }
  const { url } = await startApp(t, await sqlite.createDatabase(t), { env })
  const fail = async (client: string) =>
    (await request(`${url}/plants`, { headers: { ...bearer('x'), 'x-forwarded-for': client } })).status
  const rows: [forwarded: string, status: number][] = [
    ['192.0.2.1:4711', 401],
    ['192.0.2.1:4712', 429],
    ['192.0.2.1', 429],
    ['192.0.2.2:4711, 192.0.2.9:80', 401],
    ['192.0.2.2', 429],
    ['[2001:db8::1]:4711', 401],
    ['2001:db8::2', 429],
  ]
  for (const [forwarded, status] of rows) t.equal(await fail(forwarded), status, forwarded)
})

test('without a proxy that is trusted nobody gets a new address by saying so', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t), { env: { AUTH_FAILURE_LIMIT: '1/h' } })
  const fail = async (client: string) =>
    (await request(`${url}/plants`, { headers: { ...bearer('x'), 'x-forwarded-for': client } })).status
  t.same([await fail('192.0.2.1'), await fail('192.0.2.2')], [401, 429])
})

test('AUTH_FAILURE_LIMIT=off leaves failures as they are', async (t) => {
  const { port } = await startApp(t, await sqlite.createDatabase(t), { env: { AUTH_FAILURE_LIMIT: 'off' } })
  const bytes = compose({ headers: { Authorization: 'Bearer x' } })
  const answers = await exchange(port, Buffer.concat(Array.from({ length: 300 }, () => bytes)), 300)
  t.same(new Set(answers.map(({ status }) => status)), new Set([401]))
})

/** Bad tokens of every kind, many times the limit for each of a few clients, who connect again when they are cut off. */
const floods = 4
const floodRequests = 100

test('in a flood of bad tokens every request with a good one is served', { timeout: 60_000 }, async (t) => {
  const { port, url, store } = await startApp(t, await sqlite.createDatabase(t), {
    env: { AUTH_FAILURE_LIMIT: '10/s' },
  })
  const known = await new Tokens(store.tokens).create({ name: 'known' })
  t.equal((await request(`${url}/plants`, { headers: bearer(known) })).status, 200)
  const flood = Array.from({ length: floods }, async () => {
    const answers: WireAnswer[] = []
    while (answers.length < floodRequests) {
      const more = await exchange(port, Buffer.concat(Array.from({ length: 20 }, makeBadRequest)), 20)
      const [first] = more.filter(({ status }) => status === 429)
      if (first) t.match([first.headers.get('connection'), first], ['close', more.at(-1)], 'it is the last')
      answers.push(...more)
    }
    return answers
  })
  let isOver = false
  const flooded = Promise.all(flood).finally(() => {
    isOver = true
  })
  let served = 0
  do {
    const fresh = await new Tokens(store.tokens).create({ name: `fresh ${served}` })
    for (const text of [known, token, fresh]) {
      const answer = await request(`${url}/plants`, { body: plant, headers: bearer(text) })
      t.equal(answer.status, 200)
    }
    served += 3
  } while (!isOver && served < 3000)
  const answers = (await flooded).flat()
  const count = (status: number) => answers.filter((answer: WireAnswer) => answer.status === status).length
  // Of ten, but for what a client has not read when its connection is reset.
  t.ok(count(401) > 0, `${count(401)} are told that they have no token`)
  t.ok(count(429) > 0, `${count(429)} are too many`)
  t.equal(count(401) + count(429), answers.length)
  t.comment(`${served} requests with good tokens were served meanwhile`)
})

function makeBadRequest(_: unknown, n: number): Buffer {
  const Authorization = [undefined, 'Bearer x', `Bearer ${makeToken().token}`, 'Basic eDp5'][n % 4]
  return compose({ headers: { Authorization } })
}
