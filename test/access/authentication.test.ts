// Who may do what: tokens from the environment and from the database, their scopes, their end, and what is kept of them.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { Agent, get, type IncomingMessage, type RequestOptions } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import pino from 'pino'
import { type Test, test } from 'tap'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { makeToken } from '../../src/tokens/format.ts'
import { scopes, Tokens } from '../../src/tokens/tokens.ts'
import { makeVerifier } from '../../src/tokens/verifier.ts'
import { createDirectory, engines, sqlite } from '../support/engines.ts'
import { assertProblem } from '../support/problem.ts'
import { request, spawnCli, startApp, startService, token } from '../support/service.ts'
import { openStore } from '../support/sql-store.ts'
import { listTokens } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { compose, exchange, send } from '../support/wire.ts'

const logger = pino({ level: 'silent' })
const bearer = (text: string) => ({ authorization: `Bearer ${text}` })
const plant = { name: 'Alder', tag: 'Alnus' }

for (const engine of engines) {
  test(`${engine.name}: tokens`, async (t) => {
    t.test('a token does what its scopes say, and no more', async (t) => {
      const { url, store } = await startApp(t, await engine.createDatabase(t))
      const tokens = new Tokens(store.tokens)
      const reader = await tokens.create({ name: 'reader', scopes: ['plants:read'] })
      const writer = await tokens.create({ name: 'writer', scopes: ['plants:write'] })
      const both = await tokens.create({ name: 'both' })
      const attempts: [text: string, read: number, write: number][] = [
        [reader, 200, 403],
        [writer, 403, 200],
        [both, 200, 200],
        [token, 200, 200],
      ]
      for (const [text, read, write] of attempts) {
        const list = await request(`${url}/plants`, { headers: bearer(text) })
        const add = await request(`${url}/plants`, { body: plant, headers: bearer(text) })
        t.same([list.status, add.status], [read, write])
        for (const [answer, scope] of [
          [list, 'plants:read'],
          [add, 'plants:write'],
        ] as const) {
          if (answer.status !== 403) continue
          assertProblem(t, answer, 403)
          t.equal(
            answer.headers.get('www-authenticate'),
            `Bearer realm="plant-store", error="insufficient_scope", scope="${scope}"`,
          )
        }
      }
      t.equal((await request(`${url}/plants`, { method: 'HEAD', headers: bearer(writer) })).status, 403)
    })

    t.test('an expired, a revoked and an altered token are refused', async (t) => {
      const { url, store } = await startApp(t, await engine.createDatabase(t))
      const tokens = new Tokens(store.tokens)
      const expired = await tokens.create({ name: 'a', expiresAt: Date.now() - 1 })
      const revoked = await tokens.create({ name: 'b' })
      const valid = await tokens.create({ name: 'c', expiresAt: Date.now() + 60_000 })
      t.equal(await tokens.revoke(revoked.slice(6, 14)), true)
      t.equal(await tokens.revoke(revoked.slice(6, 14)), false)
      const [, id] = valid.split('_')
      const refused = [
        expired,
        revoked,
        `${valid}x`,
        valid.toUpperCase(),
        makeToken(id).token,
        makeToken().token,
      ]
      for (const text of refused) {
        const answer = await request(`${url}/plants`, { headers: bearer(text) })
        assertProblem(t, answer, 401)
        t.equal(answer.headers.get('www-authenticate'), 'Bearer realm="plant-store", error="invalid_token"')
      }
      t.equal((await request(`${url}/plants`, { headers: bearer(valid) })).status, 200)
    })

    t.test('a store that never had a token gets one first token, and no second', async (t) => {
      const store = await openStore(await engine.createDatabase(t), { logger })
      t.teardown(() => store.close())
      const replicas = Array.from({ length: 4 }, () => new Tokens(store.tokens))
      const firsts = await Promise.all(replicas.map((tokens) => tokens.createFirst()))
      t.equal(firsts.filter((text) => text !== undefined).length, 1)
      t.equal(await new Tokens(store.tokens).createFirst(), undefined)
      const list = await listTokens(store.sql)
      t.equal(list.length, 1)
      t.match(list[0], { name: 'first', scopes, expiresAt: null })
    })

    t.test('a store whose operator has made a token gets no first one', async (t) => {
      const store = await openStore(await engine.createDatabase(t), { logger })
      t.teardown(() => store.close())
      const tokens = new Tokens(store.tokens)
      await tokens.create({ name: 'a' })
      t.equal(await tokens.createFirst(), undefined)
      t.equal((await listTokens(store.sql)).length, 1)
    })

    t.test('a revoked token is refused within 5 seconds, an expired one at once', async (t) => {
      const store = await openStore(await engine.createDatabase(t), { logger })
      t.teardown(() => store.close())
      let nowMs = 1_000_000_000_000
      const now = () => nowMs
      const tokens = new Tokens(store.tokens, now)
      const verify = makeVerifier(tokens, { accessTokens: [], logger, now, monotonicNow: now })
      const text = await tokens.create({ name: 'a', expiresAt: nowMs + 10_000 })
      t.same((await verify(text))?.scopes, new Set(scopes))
      await tokens.revoke(text.slice(6, 14))
      nowMs += 4999
      t.equal(await verify(text), undefined)
      const short = await tokens.create({ name: 'b', expiresAt: nowMs + 500 })
      t.ok(await verify(short))
      nowMs += 500
      t.equal(await verify(short), undefined)
    })

    t.test('the last use of a token is noted at most once a minute', async (t) => {
      const store = await openStore(await engine.createDatabase(t), { logger })
      t.teardown(() => store.close())
      let nowMs = 1_000_000_000_000
      const now = () => nowMs
      const tokens = new Tokens(store.tokens, now)
      const text = await tokens.create({ name: 'a' })
      const noted = async () => (await listTokens(store.sql))[0]?.lastUsedAt
      t.equal(await noted(), null)
      // What the verifier starts here ends before what the test asks next: writes are made one after the other.
      const use = async () => {
        await makeVerifier(tokens, { accessTokens: [], logger, now })(text)
        await tokens.revoke('nobody')
      }
      await use()
      const first = nowMs
      t.equal(await noted(), first)
      nowMs = first + 59_999
      await use()
      await tokens.touch(text.slice(6, 14))
      t.equal(await noted(), first)
      nowMs = first + 60_000
      await use()
      t.equal(await noted(), first + 60_000)
    })
  })
}

/** A store that counts its look-ups. */
async function openCounted(t: Test) {
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  t.teardown(() => store.close())
  let count = 0
  const find: typeof store.tokens.find = (ids) => {
    count++
    return store.tokens.find(ids)
  }
  return { notes: { ...store.tokens, find }, lookUps: () => count }
}

test('a token that was good and was revoked is looked up once in a while, like any other', async (t) => {
  const { notes, lookUps } = await openCounted(t)
  let nowMs = 1_000_000_000_000
  const now = () => nowMs
  const tokens = new Tokens(notes, now)
  const verify = makeVerifier(tokens, { accessTokens: [], logger, now, monotonicNow: now })
  const text = await tokens.create({ name: 'a' })
  t.ok(await verify(text))
  await tokens.revoke(text.slice(6, 14))
  nowMs += 5000
  for (let n = 0; n < 10; n++) t.equal(await verify(text), undefined)
  t.equal(lookUps(), 2)
})

test('a token that comes while others are looked up is looked up, too', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  const tokens = new Tokens(store.tokens)
  const [one, two] = [await tokens.create({ name: 'one' }), await tokens.create({ name: 'two' })]
  const [begun, going] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const find: typeof store.tokens.find = async (ids) => {
    begun.resolve()
    const found = await store.tokens.find(ids)
    await going.promise
    return found
  }
  const { url, app } = await startApp(t, '', { store: { ...store, tokens: { ...store.tokens, find } } })
  const first = request(`${url}/plants`, { headers: bearer(one) })
  await begun.promise
  const arrived = once(app.server, 'request')
  const second = request(`${url}/plants`, { headers: bearer(two) })
  await arrived
  going.resolve()
  t.same([(await first).status, (await second).status], [200, 200])
})

test('the scheme is case-insensitive, and the token may be anything but a comma', async (t) => {
  const tokens = ['plain', 'with space', 'p@$$:w0rd=="', 'ключ']
  const { port } = await startApp(t, await sqlite.createDatabase(t), {
    env: { ACCESS_TOKENS: tokens.join(' , ') },
  })
  for (const text of tokens)
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
      const answer = await send(port, compose({ headers: { Authorization: `${scheme} ${text}` } }))
      t.equal(answer.status, 200, `${scheme} ${text}`)
    }
  for (const text of ['plain,with space', 'Plain', ',', 'ключ '.repeat(2)])
    assertProblem(t, await send(port, compose({ headers: { Authorization: `Bearer ${text}` } })), 401)
})

test('what only resembles a token of ACCESS_TOKENS is none', async (t) => {
  const tokens = ['correct-horse-battery-staple', 'Tr0ub4dor&3']
  const { port } = await startApp(t, await sqlite.createDatabase(t), {
    env: { ACCESS_TOKENS: tokens.join() },
  })
  const ask = (text: string) => send(port, compose({ headers: { Authorization: `Bearer ${text}` } }))
  for (const text of tokens) {
    t.equal((await ask(text)).status, 200)
    const others = [
      text.slice(0, -1),
      text.slice(0, 1),
      text.slice(1),
      text.slice(-1),
      `${text}x`,
      `x${text}`,
      `${text}${text}`,
      text.toUpperCase(),
      text.toLowerCase().replace('c', 'C'),
    ]
    for (const other of others) {
      t.not(other, text)
      assertProblem(t, await ask(other), 401)
    }
  }
  assertProblem(t, await ask(tokens.join()), 401)
})

test('what has not the form of a token, or not its checksum, is refused with no look-up', async (t) => {
  const { notes, lookUps } = await openCounted(t)
  const tokens = new Tokens(notes)
  const verify = makeVerifier(tokens, { accessTokens: [], logger })
  const { token: good } = makeToken()
  const junk = [
    '',
    'x',
    good.slice(0, -1),
    `${good}0`,
    ` ${good}`,
    good.replace('plant_', 'tree_'),
    good.slice(0, 20) + (good[20] === '0' ? '1' : '0') + good.slice(21),
    good.slice(0, -1) + (good.endsWith('0') ? '1' : '0'),
  ]
  for (const text of junk) t.equal(await verify(text), undefined)
  t.equal(lookUps(), 0)
  t.equal(await verify(good), undefined)
  t.equal(lookUps(), 1, 'a well-formed one is looked up')
  for (let n = 0; n < 10; n++) await verify(good)
  t.equal(lookUps(), 1, 'once in a while')
})

test('a token has the form that scanners look for, and differs each time', async (t) => {
  const texts = Array.from({ length: 1000 }, () => makeToken().token)
  for (const text of texts) t.match(text, /^plant_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}_[0-9A-Za-z]{6}$/)
  t.equal(new Set(texts.map((text) => text.slice(15, 47))).size, 1000)
  t.ok(32 * Math.log2(62) >= 190)
})

test('401 and 403 come before the body is read', async (t) => {
  const { port, url, store } = await startApp(t, await sqlite.createDatabase(t))
  const reader = await new Tokens(store.tokens).create({ name: 'reader', scopes: ['plants:read'] })
  const expectations = [undefined, '100-continue']
  for (const Expect of expectations)
    for (const [text, status] of [
      ['no', 401],
      [makeToken().token, 401],
      [reader, 403],
    ] as const) {
      const head = compose({
        body: '',
        headers: { Authorization: `Bearer ${text}`, 'Content-Length': '10000', Expect },
      })
      // The body never comes, and an answer that asked for it would be the first here.
      assertProblem(t, await send(port, head), status)
    }
  t.equal((await request(`${url}/plants`)).text, '[]')
})

test('each request of a connection is judged by its own credentials', async (t) => {
  const { port, store } = await startApp(t, await sqlite.createDatabase(t))
  const reader = await new Tokens(store.tokens).create({ name: 'reader', scopes: ['plants:read'] })
  const attempts: [authorization: string | undefined, status: number][] = [
    [`Bearer ${token}`, 200],
    [`Bearer ${token}x`, 401],
    [`Bearer ${token}`, 200],
    [`Bearer A${token.slice(1)}`, 401],
    [`Bearer ${token}`, 200],
    [undefined, 401],
    [`Bearer ${reader}`, 200],
    [`Bearer ${token.toUpperCase()}`, 401],
    [`Bearer ${'x'.repeat(1000)}`, 401],
    [`Bearer ${' '.repeat(1000)}${token}`, 200],
  ]
  const bytes = attempts.map(([Authorization]) => compose({ headers: { Authorization } }))
  const answers = await exchange(port, Buffer.concat(bytes), attempts.length)
  t.same(
    answers.map(({ status }) => status),
    attempts.map(([, status]) => status),
  )
  // One after another they find what the connection keeps of the last one.
  const ask = askInTurn(t, port)
  for (const [authorization, status] of attempts)
    t.equal((await ask({ headers: authorization ? { authorization } : {} })).status, status)
})

/** Sends requests one after another, on one connection while it lasts. */
function askInTurn(t: Test, port: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  return async (options: RequestOptions) => {
    const asking = get({ port, agent, path: '/plants?limit=1', ...options })
    const [answer] = (await once(asking, 'response')) as [IncomingMessage]
    await once(answer.resume(), 'end')
    return { status: answer.statusCode, isReused: asking.reusedSocket }
  }
}

test('what a token lost it has lost on the connections that it was used on, too', async (t) => {
  const { port, store } = await startApp(t, await sqlite.createDatabase(t))
  const tokens = new Tokens(store.tokens)
  const [revoked, expired] = [
    await tokens.create({ name: 'revoked', scopes: ['plants:read'] }),
    await tokens.create({ name: 'expired', expiresAt: Date.now() + 2500 }),
  ]
  const inTurn = askInTurn(t, port)
  const ask = (text: string, method = 'GET') => inTurn({ method, headers: bearer(text) })
  for (const text of [expired, revoked]) {
    t.equal((await ask(text)).status, 200)
    t.same(await ask(text), { status: 200, isReused: true })
    if (text === revoked) t.same(await ask(text, 'POST'), { status: 403, isReused: true })
    if (text === revoked) await tokens.revoke(text.slice(6, 14))
    await until(async () => (await ask(text)).status !== 200)
    t.same(await ask(text), { status: 401, isReused: true })
  }
})

test('a request that waits for 100 Continue gets it once its token is known', async (t) => {
  const { port } = await startApp(t, await sqlite.createDatabase(t))
  const body = JSON.stringify(plant)
  const bytes = compose({ body, headers: { Expect: '100-continue' } })
  const answers = await exchange(port, bytes, 2)
  t.same(
    answers.map(({ status }) => status),
    [100, 200],
  )
})

test('of a token the database holds the hash, and the log nothing', async (t) => {
  const directory = createDirectory(t)
  const DATABASE_URL = `file:${join(directory, 'plants.db')}`
  const service = await startService(t, { DATABASE_URL, LOG_LEVEL: 'trace' })
  const created = spawnCli(t, ['token', 'create', '--name', 'a'], { DATABASE_URL })
  t.match(await created.ended, { code: 0 })
  const text = created.output().stdout.trim()
  for (const secret of [text, token, `${text}x`, makeToken().token]) {
    await request(`${service.url}/plants`, { headers: bearer(secret) })
    await request(`${service.url}/plants`, { body: '{', headers: bearer(secret) })
    await request(`${service.url}/nothing`, { headers: bearer(secret) })
  }
  const files = readdirSync(directory)
  const content = Buffer.concat(files.map((name) => readFileSync(join(directory, name)))).toString('latin1')
  t.ok(files.length > 0)
  t.ok(content.includes(createHash('sha256').update(text).digest('hex')))
  const [, id = '', secret = ''] = text.split('_')
  t.ok(content.includes(id))
  t.notOk(content.includes(secret))
  service.child.kill('SIGTERM')
  t.match(await service.ended, { code: 0 })
  const { stdout, stderr } = service.output()
  t.equal(stderr.match(/"msg":"request"/g)?.length, 12)
  for (const part of [secret, token, 'Bearer', 'plant_']) t.notOk((stdout + stderr).includes(part), part)
})

test('a store that fails makes no token valid', async (t: Test) => {
  const database = await sqlite.createDatabase(t)
  const store = await openStore(database, { logger })
  const tokens = { ...store.tokens, find: () => Promise.reject(new Error('no database')) }
  const { url } = await startApp(t, database, { store: { ...store, tokens } })
  const answer = await request(`${url}/plants`, { headers: bearer(makeToken().token) })
  t.ok(answer.status >= 500)
  assertProblem(t, answer, answer.status)
  t.equal((await request(`${url}/plants`)).status, 200)
})

test('too many unknown tokens end their connections, and a store that cannot be read does not', async (t: Test) => {
  const database = await sqlite.createDatabase(t)
  const store = await openStore(database, { logger })
  for (const [outcome, connection] of [
    ['overloaded', 'close'],
    ['unread', 'keep-alive'],
  ] as const) {
    const tokens = { ...store.tokens, find: () => Promise.reject(new StoreUnavailable(outcome, 'secret')) }
    const { url } = await startApp(t, database, { store: { ...store, tokens } })
    const answer = await request(`${url}/plants`, { headers: bearer(makeToken().token) })
    t.match(assertProblem(t, answer, 503), { type: `/problems/${outcome}` })
    t.equal(answer.headers.get('connection'), connection)
  }
})

for (const engine of engines)
  test(`${engine.name}: a token that is revoked while a body comes adds nothing`, async (t) => {
    const { port, url, store } = await startApp(t, await engine.createDatabase(t))
    const tokens = new Tokens(store.tokens)
    const text = await tokens.create({ name: 'a' })
    const bytes = compose({ body: JSON.stringify(plant), headers: { Authorization: `Bearer ${text}` } })
    const socket = connect(port, '127.0.0.1').setEncoding('latin1')
    t.teardown(() => socket.destroy())
    // Once the head has been judged, it is believed on the connection: the same one is asked first.
    socket.write(bytes)
    t.match(String(await once(socket, 'data')), '200 OK')
    socket.write(bytes.subarray(0, -1))
    await tokens.revoke(text.slice(6, 14))
    const ask = () => request(`${url}/plants?limit=0`, { headers: bearer(text) })
    await until(async () => (await ask()).status !== 200)
    t.equal((await ask()).status, 401)
    socket.write(bytes.subarray(-1))
    t.match(String(await once(socket, 'data')), '401 Unauthorized')
    t.equal((await request(`${url}/plants`)).text, JSON.stringify([plant]))
  })
