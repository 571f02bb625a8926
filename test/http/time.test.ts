// A complete request gets a response within 5 s, whatever it waits for, and the response states the outcome.
import { once } from 'node:events'
import { connect } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import tap, { type Test } from 'tap'
import type { PlantLog } from '../../src/store/engine.ts'
import { assertWithin, isFull } from '../support/full.ts'
import type { Answer } from '../support/service.ts'
import { divisor } from '../support/short-limits.ts'

const { storeLimitMs } = await import('../../src/store/in-time.ts')
const { fillLarge, openStore } = await import('../support/stores.ts')
const { makeToken } = await import('../../src/tokens/format.ts')
const { scopes } = await import('../../src/tokens/tokens.ts')
const { createDirectory, sqlite } = await import('../support/engines.ts')
const { assertProblem } = await import('../support/problem.ts')
const { request, startApp, startService, token } = await import('../support/service.ts')
const { compose, exchange, readAnswers } = await import('../support/wire.ts')

const promisedMs = 5000
/** Tests that mostly wait, so they run at the same time. */
const test = (title: string, run: (t: Test) => Promise<void>) => tap.test(title, { buffered: true }, run)
tap.jobs = 10

/** With half of the time, a writer on a busy machine could be too late. */
const refused = isFull ? /Nothing was added/ : /Nothing was added|not known/

type Timed = Answer & { ms: number }

async function time(asked: Promise<Answer>): Promise<Timed> {
  const startMs = performance.now()
  const answer = await asked
  return { ...answer, ms: performance.now() - startMs }
}

function assertInTime(t: Test, answer: Timed, detail: RegExp): void {
  t.match(assertProblem(t, answer, 503).detail, detail)
  t.match(answer.headers.get('retry-after'), /^\d+$/)
  assertWithin(t, answer.ms, promisedMs)
}

test('refuses every addition in time while the file is locked, and adds nothing later', async (t) => {
  const database = await sqlite.createDatabase(t)
  const { url } = await startApp(t, database)
  const other = new DatabaseSync(new URL(database))
  other.exec('BEGIN IMMEDIATE')
  const first = time(request(`${url}/plants`, { body: { name: 'first', tag: '' } }))
  const lists: Promise<Answer>[] = []
  const later: Promise<Timed>[] = []
  // Some of these come while one addition is in progress and another one waits.
  for (let n = 0; n < 20; n++) {
    later.push(time(request(`${url}/plants`, { body: { name: `later ${n}`, tag: '' } })))
    lists.push(request(`${url}/plants`))
    await Promise.all(lists)
  }
  for (const answer of await Promise.all([first, ...later])) assertInTime(t, answer, refused)
  for (const list of await Promise.all(lists)) t.equal(list.text, '[]', 'lists are answered meanwhile')
  other.exec('ROLLBACK')
  other.close()
  t.equal((await request(`${url}/plants`, { body: { name: 'last', tag: '' } })).status, 200)
  t.equal((await request(`${url}/plants`)).text, '[{"name":"last","tag":""}]')
})

test('a service that stops while its file is locked responds to waiting requests', async (t) => {
  const database = await sqlite.createDatabase(t)
  const service = await startService(t, { DATABASE_URL: database, LOG_LEVEL: 'error' }, createDirectory(t))
  const other = new DatabaseSync(new URL(database))
  other.exec('BEGIN IMMEDIATE')
  const sockets = Array.from({ length: 3 }, (_, n) => {
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
    socket.write(compose({ body: JSON.stringify({ name: `${n}`, tag: '' }) }))
    return socket
  })
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  // The service has received these requests once it responds to a later one.
  await request(`${service.url}/plants`)
  const answers = sockets.map(async (socket) =>
    readAnswers((await socket.setEncoding('latin1').toArray()).join('')),
  )
  service.child.kill('SIGTERM')
  for (const [answer, ...more] of await Promise.all(answers)) {
    t.match(answer, { status: 503 })
    t.match(answer?.text, refused)
    t.same(more, [])
  }
  t.match(await service.ended, { code: 0, signal: null })
  other.close()
})

test('the deadline of the store is earlier than that of the request', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t))
  const leftMs: number[] = []
  const append: PlantLog['append'] = (entries, options) => {
    leftMs.push(Number(options?.deadlineMs) - performance.now())
    return store.log.append(entries, options)
  }
  const grant = { id: 'a', scopes: new Set(scopes), untilMs: Number.POSITIVE_INFINITY }
  const options = { store: { ...store, log: { ...store.log, append } }, verify: () => grant }
  const { port, url } = await startApp(t, '', options)
  t.equal((await request(`${url}/plants`, { body: { name: 'a', tag: '' } })).status, 200)
  // The time limit starts at the end of the body.
  const bytes = compose({ body: '{"name":"b","tag":""}' })
  const socket = connect(port, '127.0.0.1').setNoDelay()
  socket.write(bytes.subarray(0, -1))
  await request(`${url}/plants`)
  socket.write(bytes.subarray(-1))
  await once(socket, 'data')
  socket.destroy()
  for (const ms of leftMs) t.ok(ms > 0 && ms <= storeLimitMs, `${ms} of ${storeLimitMs} ms`)
  t.equal(leftMs.length, 2)
  // A verdict that expires now needs another look-up first, so the deadline is earlier.
  grant.untilMs = performance.now()
  t.equal((await request(`${url}/plants`, { body: { name: 'c', tag: '' } })).status, 200)
  t.ok(Number(leftMs[2]) <= (storeLimitMs * 2) / 3)
})

test('a request gets 503 in time when the store never responds', async (t) => {
  const list = (url: string) => request(`${url}/plants`)
  const cases: [verb: keyof PlantLog, ask: (url: string) => Promise<Answer>, detail: RegExp][] = [
    ['append', (url) => request(`${url}/plants`, { body: { name: 'a', tag: '' } }), /not known/],
    ['head', list, /cannot be read/],
    // Also a list that waits for the read of an earlier one.
    ['head', (url) => Promise.race([list(url), request(url)]).then(() => list(url)), /cannot be read/],
    ['read', (url) => request(`${url}/plants?limit=1`), /cannot be read/],
  ]
  await Promise.all(
    cases.map(async ([verb, ask, detail]) => {
      const store = await openStore(await sqlite.createDatabase(t))
      await store.log.append([{ item: '{"name":"a","tag":""}', id: undefined }])
      const log = { ...store.log, [verb]: () => new Promise(() => {}) }
      const { url } = await startApp(t, '', { store: { ...store, log } })
      assertInTime(t, await time(ask(url)), detail)
    }),
  )
})

test('a request gets 503 in time when the look-up of its token never ends', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t))
  const tokens = { ...store.tokens, find: () => new Promise<never>(() => {}) }
  const { url } = await startApp(t, '', { store: { ...store, tokens } })
  const known = { authorization: `Bearer ${makeToken().token}` }
  assertInTime(t, await time(request(`${url}/plants`, { headers: known })), /cannot be read/)
  const added = time(request(`${url}/plants`, { headers: known, body: { name: 'a', tag: '' } }))
  assertInTime(t, await added, /cannot be read/)
})

test('a client that stops reading a list is reset after 30 to 60 s', async (t) => {
  const { app, port, store } = await startApp(t)
  await fillLarge(store)
  t.equal(app.server.timeout, 30_000 / divisor)
  if (!isFull) app.server.timeout = 1000
  const stallMs = app.server.timeout
  const client = connect(port, '127.0.0.1')
  t.teardown(() => client.destroy())
  client.pause().write(`GET /plants HTTP/1.0\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  const [socket] = await once(app.server, 'connection')
  const startMs = performance.now()
  await once(socket, 'close')
  const tookMs = performance.now() - startMs
  // Node restarts its timer once, when it finds that a part of a chunk was sent.
  assertWithin(t, tookMs, 2 * stallMs + 2000)
  t.ok(tookMs > stallMs - 100, `${tookMs} ms`)
  await t.rejects(client.resume().toArray(), { code: 'ECONNRESET' })
})

/** Incomplete requests. */
const partial = [
  ...['GET', 'HEAD', 'POST'].map((method) => `${method} /plants HTTP/1.1\r\nHost: a\r\n`),
  compose({ body: '{"name":', headers: { 'Content-Length': '100' } }),
  compose({ headers: { Authorization: undefined } }).subarray(0, -2),
]

test('a request that does not arrive in time gets 408, and the connection closes', async (t) => {
  const { app, port } = await startApp(t)
  t.equal(app.server.headersTimeout, 10_000)
  t.equal(app.server.requestTimeout, Math.round(20_000 / divisor))
  app.server.headersTimeout = 100
  app.server.requestTimeout = 300
  const answers = await Promise.all(partial.map((bytes) => exchange(port, bytes, Number.POSITIVE_INFINITY)))
  for (const [answer, ...more] of answers) {
    assertProblem(t, answer as NonNullable<typeof answer>, 408)
    t.equal(answer?.headers.get('connection'), 'close')
    t.same(more, [])
  }
})
