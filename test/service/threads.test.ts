// THREADS: several threads that serve requests are one service, whichever of them a connection meets.
import { once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import { Agent, request as send } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import pino from 'pino'
import tap, { type Test, test } from 'tap'
import type { Plant } from '../../schemas/plant.ts'
import { readConfig } from '../../src/config/load-config.ts'
import { makeShared } from '../../src/service/shared.ts'
import { countThreads, Threads } from '../../src/service/threads/threads.ts'
import { Tokens } from '../../src/tokens/tokens.ts'
import { ask, findAdmin } from '../support/admin.ts'
import { createDirectory, type Engine, engines, sqlite } from '../support/engines.ts'
import { readPlants } from '../support/imports.ts'
import { collectLog } from '../support/log-lines.ts'
import { preload } from '../support/preload.ts'
import { request, startApp, startService, startThreads, token } from '../support/service.ts'
import { openStore } from '../support/sql-store.ts'
import { until } from '../support/until.ts'
import { compose, exchange } from '../support/wire.ts'
import { watchWorkers } from '../support/workers.ts'

type Heard = { status: number; text: string; headers: Record<string, string | string[] | undefined> }
/** A connection that stays open: all that is sent over it meets the same thread. */
type Line = { thread: string; send(path: string, options?: Sent): Promise<Heard> }
type Sent = { body?: object; bearer?: string; headers?: Record<string, string> }

function openLine(t: Test, url: string): Omit<Line, 'thread'> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  return {
    async send(path, { body, bearer = token, headers: more } = {}) {
      const headers = {
        authorization: `Bearer ${bearer}`,
        ...(body && { 'content-type': 'application/json' }),
        ...more,
      }
      const sent = send(`${url}${path}`, { agent, headers, method: body ? 'POST' : 'GET' })
      sent.end(body && JSON.stringify(body))
      const [answer] = await once(sent, 'response')
      let text = ''
      for await (const chunk of answer.setEncoding('utf8')) text += chunk
      return { status: answer.statusCode, text, headers: answer.headers }
    },
  }
}

/** A line to each of two threads: a thread begins all its request ids alike. */
async function openLines(t: Test, url: string): Promise<[Line, Line]> {
  const lines = new Map<string, Line>()
  while (lines.size < 2) {
    const line = openLine(t, url)
    const { headers } = await line.send('/plants?limit=0')
    const [thread = ''] = String(headers['x-request-id']).split('-')
    lines.set(thread, { thread, ...line })
  }
  return [...lines.values()] as [Line, Line]
}

/** By engine: for all tests that only add to what is there. */
const services = new Map<Engine, ReturnType<typeof startThreads>>()

function serviceOf(engine: Engine): ReturnType<typeof startThreads> {
  const service = services.get(engine) ?? engine.createDatabase(tap).then((url) => startThreads(tap, url))
  services.set(engine, service)
  return service
}

const named = (name: string) => ({ name, tag: '' })
const namesIn = (text: string) => (JSON.parse(text) as Plant[]).map(({ name }) => name)

for (const engine of engines)
  test(`${engine.name}: what one thread has acknowledged is in the next list of another`, async (t) => {
    const { url } = await serviceOf(engine)
    const [one, other] = await openLines(t, url)
    const added = namesIn((await one.send('/plants')).text)
    for (let n = 0; n < 20; n++) {
      const [writer, reader] = n % 2 ? [one, other] : [other, one]
      t.equal((await writer.send('/plants', { body: named(`${n}`) })).status, 200)
      added.push(`${n}`)
      t.strictSame(namesIn((await reader.send('/plants')).text), added)
    }
    const tags = await Promise.all(
      [one, other].map(async (line) => (await line.send('/plants')).headers.etag),
    )
    t.equal(tags[0], tags[1], 'and it is the same list')
  })

for (const engine of engines)
  test(`${engine.name}: each thread knows the ids, the places and the names of lists of the other`, async (t) => {
    const { url } = await serviceOf(engine)
    const [one, other] = await openLines(t, url)
    const { length: before } = namesIn((await one.send('/plants')).text)
    const plants = ['ñandú 🌵', '木', 'quotes " and \\'].map((name, id) => ({ id, name, tag: '\u2028' }))
    for (const body of plants) t.equal((await one.send('/plants', { body })).status, 200)
    for (const body of plants) t.equal((await other.send('/plants', { body })).status, 200, 'a replay')
    const conflict = await other.send('/plants', { body: { id: 0, ...named('another') } })
    t.match(conflict, { status: 409, headers: { 'content-type': 'application/problem+json' } })
    const whole = await other.send('/plants')
    t.strictSame(
      JSON.parse(whole.text).slice(before),
      plants.map(({ name, tag }) => ({ name, tag })),
      'each is there once, to the byte',
    )
    const { headers } = await one.send(`/plants?limit=${before + 1}`)
    const [, next = ''] = /<(.+)>; rel="next"/.exec(String(headers.link)) ?? []
    t.equal(namesIn((await other.send(next)).text)[0], '木')
    const condition = { 'if-none-match': String(whole.headers.etag) }
    t.equal((await one.send('/plants', { headers: condition })).status, 304)
    for (let id = 10; id < 35; id++) {
      const body = { id, ...named(`${id}`) }
      const answers = await Promise.all([one, other].map((line) => line.send('/plants', { body })))
      t.same(
        answers.map(({ status }) => status),
        [200, 200],
        'an id that both are given at one moment',
      )
    }
    t.equal(namesIn((await one.send('/plants')).text).length, before + plants.length + 25, 'is added once')
  })

test('a revoked token is refused by every thread', async (t) => {
  const { url, store } = await serviceOf(sqlite)
  const tokens = new Tokens(store.tokens)
  const bearer = await tokens.create({ name: 'mine' })
  const lines = await openLines(t, url)
  const statuses = async () =>
    (await Promise.all(lines.map((line) => line.send('/plants', { bearer })))).map(({ status }) => status)
  t.strictSame(await statuses(), [200, 200])
  await tokens.revoke(bearer.split('_')[1] as string)
  // It takes as long as verdicts are kept, in each thread.
  await until(async () => !(await statuses()).includes(200))
  t.strictSame(await statuses(), [401, 401])
})

test('the rates of a token and of failures are those of all threads together', async (t) => {
  const env = { RATE_LIMIT: '10/h', AUTH_FAILURE_LIMIT: '10/h' }
  const { url } = await startThreads(t, await sqlite.createDatabase(t), env)
  const lines = await openLines(t, url)
  // Finding both threads took some of them.
  for (const [bearer, good, limited] of [
    [token, 200, 429],
    ['wrong', 401, 429],
  ] as const) {
    const statuses: number[] = []
    for (let n = 0; n < 24; n++)
      statuses.push((await (lines[n % 2] as Line).send('/plants', { bearer })).status)
    t.ok(statuses.filter((status) => status === good).length <= 10, `${statuses}`)
    t.strictSame(statuses.slice(-2), [limited, limited], 'by both')
  }
})

test('however many threads there are, each has room for a long list that is compressed', async (t) => {
  const { url, store } = await startApp(t, await sqlite.createDatabase(t), { shared: makeShared(256) })
  const entries = Array.from({ length: 4001 }, (_, n) => ({ item: JSON.stringify(named(`${n}`)), id: n }))
  await store.log.append(entries)
  const { status, text } = await request(`${url}/plants`, { headers: { 'accept-encoding': 'gzip' } })
  t.equal(status, 200)
  t.equal(namesIn(text).length, 4001)
})

test('MAX_CONNECTIONS counts the connections of all threads', async (t) => {
  const { url, port } = await startThreads(t, await sqlite.createDatabase(t), { MAX_CONNECTIONS: '4' })
  // Busy with a request that is still to come: idle ones would make room.
  const half = compose({ body: '', headers: { 'Content-Length': '100', Expect: '100-continue' } })
  for (let n = 0; n < 4; n++) {
    const socket = connect(port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.write(half)
    await once(socket, 'data')
  }
  const headers = { connection: 'close' }
  const ask = async () =>
    (
      await openLine(t, url)
        .send('/plants', { headers })
        .catch(() => undefined)
    )?.status
  // A thread tells the others now and then how many of its connections are idle: until then one may be let in.
  const refused = (statuses: unknown[]) => statuses.every((status) => status === 503)
  await until(async () => refused(await Promise.all(Array.from({ length: 8 }, ask))))
})

/** The second thread dies or hangs once the file that FAULT names is there, and says which. */
const faultOnCommand = `
  import { existsSync, readFileSync } from 'node:fs'
  import { isMainThread, workerData } from 'node:worker_threads'
  const strike = () => {
    if (!existsSync(process.env.FAULT)) return
    const kind = readFileSync(process.env.FAULT, 'utf8')
    if (kind === 'exit') process.exit(1)
    if (kind === 'die') throw new Error('a fault of this thread')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  }
  if (!isMainThread && workerData?.config) setInterval(strike, 20).unref()`

async function startFailing(t: Test) {
  const directory = createDirectory(t)
  const fault = join(directory, 'fault')
  const env = { THREADS: '2', ADMIN_PORT: '0', FAULT: fault, ...preload(faultOnCommand) }
  const service = await startService(t, env, directory)
  const strike = (kind: 'die' | 'exit' | 'hang') => {
    writeFileSync(`${fault}.new`, kind)
    renameSync(`${fault}.new`, fault)
  }
  return { ...service, directory, strike }
}

test('a thread that dies ends the process, which says why, and nothing acknowledged is lost', async (t) => {
  const service = await startFailing(t)
  const lines = await openLines(t, service.url)
  const acknowledged: string[] = []
  const adding = lines.map(async (line) => {
    for (let n = 0; ; n++) {
      const name = `${line.thread}-${n}`
      const answer = await line.send('/plants', { body: named(name) }).catch(() => undefined)
      if (answer?.status !== 200) return
      if (acknowledged.push(name) === 10) service.strike('die')
    }
  })
  t.match(await service.ended, { code: 1, signal: null })
  await Promise.all(adding)
  const { stderr } = service.output()
  t.match(stderr, /a fault of this thread/)
  const plants = await readPlants(`file:${join(service.directory, 'data/plants.db')}`)
  const names = plants.map(({ name }) => name)
  t.strictSame(
    acknowledged.filter((name) => !names.includes(name)),
    [],
  )
})

test('a thread that ends without an error ends the process, too', async (t) => {
  const service = await startFailing(t)
  service.strike('exit')
  t.match(await service.ended, { code: 1, signal: null })
  t.match(service.output().stderr, /thread 1 ended/)
})

test('a thread that hangs is found by /livez and in the log', async (t) => {
  const service = await startFailing(t)
  const admin = await findAdmin(service)
  t.equal((await ask(`${admin}/livez`)).status, 200)
  const port = Number(new URL(service.url).port)
  for (let n = 0; n < 20; n++) await exchange(port, compose({ headers: { Connection: 'close' } }))
  const countRequests = async () => {
    const { text } = await ask(`${admin}/metrics`)
    const counts = [...text.matchAll(/^http_request_duration_seconds_count\{.* (\d+)$/gm)]
    return counts.reduce((sum, [, count]) => sum + Number(count), 0)
  }
  await until(async () => (await countRequests()) === 20)
  service.strike('hang')
  await service.logs(/a thread hangs/)
  await service.logs(/thread 1 does not answer/)
  const { status, text } = await ask(`${admin}/livez`)
  t.equal(status, 503)
  t.strictSame(JSON.parse(text), { status: 'hung', reason: 'thread-hangs' })
  t.equal(await countRequests(), 20, 'what it has counted is not forgotten')
})

test('however often metrics are asked for at one moment, each thread is asked once', async (t) => {
  const warnings: Error[] = []
  const note = (warning: Error) => warnings.push(warning)
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  const { metrics } = await serviceOf(sqlite)
  await Promise.all(Array.from({ length: 12 }, () => metrics.write()))
  t.strictSame(warnings, [])
})

test('from outside it is one process: one log, sums of metrics, and one signal ends it in order', async (t) => {
  const directory = createDirectory(t)
  const service = await startService(t, { THREADS: '2', ADMIN_PORT: '0' }, directory)
  const admin = await findAdmin(service)
  const lines = await openLines(t, service.url)
  for (const line of lines) for (let n = 0; n < 5; n++) await line.send('/plants?limit=1')
  const { text } = await ask(`${admin}/metrics`)
  const served = [...text.matchAll(/^http_request_duration_seconds_count{.*} (\d+)$/gm)]
  t.ok(served.reduce((sum, [, count]) => sum + Number(count), 0) >= 12)
  t.equal(text.match(/^# TYPE http_request_duration_seconds histogram$/gm)?.length, 1)
  service.child.kill('SIGTERM')
  t.match(await service.ended, { code: 0, signal: null })
  const logged = service
    .output()
    .stderr.trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  t.strictSame([...new Set(logged.map(({ pid }) => pid))], [service.child.pid])
  for (const { thread } of lines)
    t.ok(logged.filter(({ requestId }) => requestId?.startsWith(`${thread}-`)).length >= 5)
})

test('threads that cannot start keep the service from starting, and say why', async (t) => {
  const seen = watchWorkers(t)
  const logger = pino({ level: 'silent' })
  const config = readConfig({ DATABASE_URL: await sqlite.createDatabase(t), HOST: '192.0.2.1', THREADS: '2' })
  const store = await openStore(config.databaseUrl, { logger })
  const log = { logger, sink: { write() {} }, mask: String }
  const threads = new Threads({ store, shared: makeShared(2), log })
  await t.rejects(threads.start(config), { message: /EADDRNOTAVAIL/ })
  await threads.close()
  await threads.start(config)
  t.equal(seen.length, 2, 'none is started once it is to end')
  await Promise.all([store.close(), threads.end()])
})

test('a port that is taken is refused, though threads could share it', async (t) => {
  const { port } = await serviceOf(sqlite)
  await t.rejects(startService(t, { THREADS: '2', PORT: `${port}` }, createDirectory(t)), {
    message: new RegExp(`PORT ${port} is in use`),
  })
})

test('THREADS is a number, or one for each core, and one where the system cannot spread connections', (t) => {
  t.equal(readConfig({}).threads, 1)
  t.equal(readConfig({ THREADS: '256' }).threads, 256)
  t.ok(readConfig({ THREADS: 'auto' }).threads >= 1)
  for (const THREADS of ['0', '-1', '1.5', '257', 'all'])
    t.throws(() => readConfig({ THREADS }), {
      message: /THREADS must be auto, or a whole number from 1 to 256/,
    })
  const lines: string[] = []
  const logger = pino({}, { write: (line) => lines.push(line) })
  t.equal(countThreads(4, logger, 'darwin'), 1)
  t.match(lines, [/THREADS 4: this system cannot share a port/])
  t.equal(countThreads(4, logger, 'linux'), 4)
  t.equal(countThreads(1, logger, 'win32'), 1)
  t.equal(lines.length, 1)
  t.end()
})

for (const engine of engines.filter(({ name }) => name === 'PostgreSQL'))
  test('what is wrong with the server is told once, not by each thread', async (t) => {
    const { log, logged } = collectLog()
    const { close } = await startThreads(t, await engine.createDatabase(t), {}, log)
    await close()
    t.equal(logged().match(/fsync is off on the database server/g)?.length, 1)
  })
