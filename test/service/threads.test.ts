// THREADS: several threads that serve requests are one service, whichever of them a connection meets.
import { once } from 'node:events'
import { renameSync } from 'node:fs'
import { Agent, request as send } from 'node:http'
import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import pino from 'pino'
import { type Test, test } from 'tap'
import type { Plant } from '../schemas/plant.ts'
import { readConfig } from '../src/config/config.ts'
import { openStore } from '../src/store/open.ts'
import { countThreads } from '../src/threads/count.ts'
import { makeShared } from '../src/threads/shared.ts'
import { Threads } from '../src/threads/threads.ts'
import { Tokens } from '../src/tokens/tokens.ts'
import { ask, findAdmin } from './support/admin.ts'
import { createDirectory, engines, sqlite } from './support/engines.ts'
import { type Running, request, startApp, startService, startThreads, token } from './support/service.ts'

type Heard = { status: number; text: string; headers: Record<string, string | string[] | undefined> }
/** A connection that stays open: all that is sent over it meets the same thread. */
type Line = { thread: string; send(path: string, options?: Sent): Promise<Heard> }
type Sent = { body?: object; bearer?: string }

function openLine(t: Test, url: string): Omit<Line, 'thread'> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  return {
    async send(path, { body, bearer = token } = {}) {
      const headers = {
        authorization: `Bearer ${bearer}`,
        ...(body && { 'content-type': 'application/json' }),
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

/** The threads that serve requests beside this one, as they come. */
function watchThreads(t: Test): Worker[] {
  const seen: Worker[] = []
  const note = (worker: Worker) => seen.push(worker)
  process.on('worker', note)
  t.teardown(() => process.off('worker', note))
  return seen
}

const named = (name: string) => ({ name, tag: '' })
const namesIn = (text: string) => (JSON.parse(text) as Plant[]).map(({ name }) => name)

for (const engine of engines)
  test(`${engine.name}: what one thread has acknowledged is in the next list of another`, async (t) => {
    const { url } = await startThreads(t, await engine.createDatabase(t))
    const [one, other] = await openLines(t, url)
    const added: string[] = []
    for (let n = 0; n < 50; n++) {
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
  test(`${engine.name}: an id that two threads are given at one moment is added once`, async (t) => {
    const { url } = await startThreads(t, await engine.createDatabase(t))
    const lines = await openLines(t, url)
    for (let id = 0; id < 25; id++) {
      const body = { id, ...named(`${id}`) }
      const answers = await Promise.all(lines.map((line) => line.send('/plants', { body })))
      t.strictSame(
        answers.map(({ status }) => status),
        [200, 200],
      )
    }
    t.equal(namesIn((await lines[0].send('/plants')).text).length, 25)
  })

test('a revoked token is refused by every thread', async (t) => {
  const { url, store } = await startThreads(t, await sqlite.createDatabase(t))
  const tokens = new Tokens(store.sql)
  const bearer = await tokens.create({ name: 'mine' })
  const lines = await openLines(t, url)
  const statuses = async () =>
    (await Promise.all(lines.map((line) => line.send('/plants', { bearer })))).map(({ status }) => status)
  t.strictSame(await statuses(), [200, 200])
  await tokens.revoke(bearer.split('_')[1] as string)
  // It takes as long as verdicts are kept, in each thread.
  while ((await statuses()).includes(200));
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
  const { url } = await startThreads(t, await sqlite.createDatabase(t), { MAX_CONNECTIONS: '4' })
  const lines = Array.from({ length: 12 }, () => openLine(t, url))
  const answers = await Promise.all(lines.map((line) => line.send('/plants')))
  t.equal(answers.filter(({ status }) => status === 200).length, 4)
  t.equal(answers.filter(({ status }) => status === 503).length, 8)
})

test('a thread that dies costs its own requests, and another one takes its place', async (t) => {
  const seen = watchThreads(t)
  const lines: string[] = []
  const logger = pino({}, { write: (line) => lines.push(line) })
  const running = await startThreads(
    t,
    await sqlite.createDatabase(t),
    {},
    { logger, sink: { write() {} }, mask: String },
  )
  const { url, metrics } = running
  const [, thread] = seen
  const [main, other] = await findMain(running, await openLines(t, url))
  const counted = () =>
    metrics
      .write()
      .then((text) => Number(/_count{method="POST",route="\/plants",status="200"} (\d+)/.exec(text)?.[1]))
  const acknowledged: string[] = []
  let faults = 0
  const write = async (line: Line, name: string) => {
    const answer = await line.send('/plants', { body: named(name) }).catch(() => undefined)
    if (answer?.status === 200) acknowledged.push(name)
    else if (line === main) faults++
    return answer
  }
  for (let n = 0; n < 10; n++) await Promise.all([write(main, `a${n}`), write(other, `b${n}`)])
  t.equal(await counted(), 20)
  let isOver = false
  const writing = (async () => {
    for (let n = 0; !isOver; n++) await write(main, `c${n}`)
  })()
  const dying = (async () => {
    for (let n = 0; (await write(other, `d${n}`)) !== undefined; n++) if (n === 5) void thread?.terminate()
  })()
  await dying
  t.ok(acknowledged.includes('d5') || acknowledged.includes('d4'))
  while (seen.length < 3) await once(process, 'worker')
  const [, again] = await findMain(running, await openLines(t, url))
  isOver = true
  await writing
  t.equal(faults, 0, 'the others have noticed nothing')
  t.equal((await write(again, 'e'))?.status, 200)
  const names = namesIn((await main.send('/plants')).text)
  t.strictSame(
    acknowledged.filter((name) => !names.includes(name)),
    [],
    'nothing acknowledged is lost',
  )
  t.ok(
    (await counted()) >= 20 + acknowledged.filter((name) => name.startsWith('c')).length,
    'counters do not go back',
  )
  t.match(lines.join(''), /a thread ended, and is replaced/)
  const text = await metrics.write()
  t.match(text, /^plant_store_threads 2$/m)
  t.match(text, /^plant_store_threads_died_total 1$/m)
})

/** The line to the main thread, which answers in this process, comes first. */
async function findMain({ app }: Running, [one, other]: [Line, Line]): Promise<[Line, Line]> {
  let isMain = false
  app.server.once('request', () => {
    isMain = true
  })
  await one.send('/plants?limit=0')
  return isMain ? [one, other] : [other, one]
}

test('threads that fail at one moment are replaced, and what they had counted stays in the sums', async (t) => {
  const seen = watchThreads(t)
  const lines: string[] = []
  const logger = pino({}, { write: (line) => lines.push(line) })
  const log = { logger, sink: { write() {} }, mask: String }
  const env = { THREADS: '3' }
  const { url, metrics } = await startThreads(t, await sqlite.createDatabase(t), env, log)
  const served = async () => {
    const text = await metrics.write()
    const count = /^http_request_duration_seconds_count{.*} (\d+)$/m.exec(text)?.[1]
    return { count: Number(count), died: Number(/^plant_store_threads_died_total (\d+)$/m.exec(text)?.[1]) }
  }
  for (let n = 1; n <= 60; n++) await openLine(t, url).send('/plants?limit=1')
  t.equal((await served()).count, 60)
  for (const thread of seen.slice(-2)) {
    // Node says so of a fault that nobody has caught.
    thread.emit('error', new Error('a fault'))
    void thread.terminate()
  }
  let died = 0
  while (died < 2) {
    const now = await served()
    died = now.died
    if (now.count !== 60) t.fail(`${now.count} of 60 requests are counted`)
  }
  t.match(lines.join(''), /a fault/)
  t.equal((await served()).count, 60)
})

test('a thread that takes the place of another one while the service drains ends connections, too', async (t) => {
  const seen = watchThreads(t)
  const running = await startThreads(t, await sqlite.createDatabase(t))
  running.drain()
  void seen.at(-1)?.terminate()
  while (seen.length < 3) await once(process, 'worker')
  let answer: Heard
  // The main thread is told in another way, of which this test makes no use.
  do answer = await openLine(t, running.url).send('/plants?limit=0')
  while (answer.headers.connection !== 'close')
  t.equal(answer.status, 200)
})

test('however often metrics are asked for at one moment, each thread is asked once', async (t) => {
  const warnings: Error[] = []
  const note = (warning: Error) => warnings.push(warning)
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  const { metrics } = await startThreads(t, await sqlite.createDatabase(t))
  await Promise.all(Array.from({ length: 12 }, () => metrics.write()))
  t.strictSame(warnings, [])
})

test('files that are lost are exchanged under all threads', async (t) => {
  const database = await sqlite.createDatabase(t)
  const path = fileURLToPath(database)
  const { url } = await startThreads(t, database)
  const lines = await openLines(t, url)
  const post = (name: string) =>
    Promise.all(lines.map(async (line) => (await line.send('/plants', { body: named(name) })).status))
  t.strictSame(await post('before'), [200, 200])
  for (const suffix of ['', '-wal', '-shm']) renameSync(path + suffix, `${path}.away${suffix}`)
  // The first hear it from the writer, the next from whoever looks for another file.
  for (let n = 0; n < 2; n++) t.strictSame(await post('lost'), [503, 503])
  for (const suffix of ['', '-wal', '-shm']) renameSync(`${path}.away${suffix}`, path + suffix)
  let statuses: number[]
  do statuses = await post('again')
  while (statuses.some((status) => status === 503))
  t.strictSame(statuses, [200, 200])
  for (const line of lines) {
    const names = new Set(namesIn((await line.send('/plants')).text))
    t.ok(names.has('before') && names.has('again'), `${[...names]}`)
  }
})

test('from outside it is one process: one log, sums of metrics, and one signal that ends it well', async (t) => {
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
  const seen = watchThreads(t)
  const logger = pino({ level: 'silent' })
  const config = readConfig({ DATABASE_URL: await sqlite.createDatabase(t), HOST: '192.0.2.1', THREADS: '2' })
  const store = await openStore(config.databaseUrl, { logger })
  const log = { logger, sink: { write() {} }, mask: String }
  const threads = new Threads({ store, shared: makeShared(2), log, isCounted: false })
  await t.rejects(threads.start(config), { message: /EADDRNOTAVAIL/ })
  while (seen.length < 3) await once(process, 'worker')
  t.equal(seen.length, 3, 'it is tried again')
  await threads.close()
  await threads.start(config)
  t.equal(seen.length, 3, 'but not once it is to end')
  await Promise.all([store.close(), threads.end()])
})

test('a port that is taken is refused, though threads could share it', async (t) => {
  const first = await startService(t, { THREADS: '2' }, createDirectory(t))
  const { port } = new URL(first.url)
  await t.rejects(startService(t, { THREADS: '2', PORT: port }, createDirectory(t)), {
    message: new RegExp(`PORT ${port} is in use`),
  })
})

test('THREADS is a number, or one for each core, and one where the system cannot spread connections', (t) => {
  t.equal(readConfig({}).threads, 1)
  t.equal(readConfig({ THREADS: '3' }).threads, 3)
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
