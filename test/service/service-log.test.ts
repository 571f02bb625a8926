// The log of a service: it says in time what happened and why, and costs no more memory than it may when nobody reads.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, renameSync } from 'node:fs'
import { connect } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import { type Test, test } from 'tap'
import { ask } from '../support/admin.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { noteProcess } from '../support/leftovers.ts'
import { listeningOn } from '../support/listening.ts'
import { findPorts } from '../support/postgres.ts'
import { assertProblem } from '../support/problem.ts'
import { inherited } from '../support/processes.ts'
import { request, type Service, startApp, startService, token } from '../support/service.ts'
import { openStore } from '../support/sql-store.ts'
import { until } from '../support/until.ts'
import { compose } from '../support/wire.ts'

type Line = {
  level: number
  msg: string
  url?: string
  outcome?: string
  lines?: number
  err?: { message: string }
}

/** The longest that a line is waited for: far more than it takes, and less than a minute. */
const patienceMs = 15_000
const mebibyte = 2 ** 20

/** The lines that are there so far; the last one may not be whole. */
function readLines(service: Service): Line[] {
  const lines = service.output().stderr.split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line))
}

/** Resolves to the first line of a kind as soon as it is there, while the service runs. */
async function lineOf(service: Service, is: (line: Line) => boolean): Promise<Line> {
  const signal = AbortSignal.timeout(patienceMs)
  for (;;) {
    const found = readLines(service).find(is)
    if (found) return found
    await once(service.child.stderr, 'data', { signal })
  }
}

test('a line is there soon after its request, and all are when the service has ended', async (t) => {
  const service = await startService(t, {}, createDirectory(t))
  await request(`${service.url}/one`)
  t.match(await lineOf(service, ({ url }) => url === '/one'), { msg: 'request', status: 404 })
  await request(`${service.url}/two`)
  t.match(await lineOf(service, ({ url }) => url === '/two'), { msg: 'request', status: 404 })
  await makeLines(t, service, 100)
  service.child.kill('SIGTERM')
  t.match(await service.ended, { code: 0 })
  t.equal(readLines(service).filter(({ url }) => url !== undefined).length, 102)
  t.match(
    readLines(service).find(({ msg }) => msg === 'stopping'),
    { signal: 'SIGTERM' },
  )
})

test('the reason of a 503 is logged, at once and not a thousand times', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  const service = await startService(t, { DATABASE_URL })
  const other = new DatabaseSync(fileURLToPath(DATABASE_URL))
  t.teardown(() => other.close())
  other.exec("CREATE TRIGGER full BEFORE INSERT ON plants BEGIN SELECT raise(ABORT, 'no room'); END")
  for (let n = 0; n < 20; n++)
    assertProblem(t, await request(`${service.url}/plants`, { body: { name: 'a', tag: '' } }), 503)
  const isReason = ({ level }: Line) => level === 40
  t.match(await lineOf(service, isReason), {
    level: 40,
    msg: 'the database failed',
    reason: 'no room',
  })
  await request(`${service.url}/last`)
  await lineOf(service, ({ url }) => url === '/last')
  // Once in a while: a machine may take long for the requests.
  const told = readLines(service).filter(isReason)
  t.ok(told.length < 5)
  t.ok(
    told.every(({ msg }) => /^the database (still )?fail/.test(String(msg))),
    'the store has said it: nobody else does',
  )
})

test('a lost file has one line, however many requests are refused for it', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  const service = await startService(t, { DATABASE_URL })
  const path = fileURLToPath(DATABASE_URL)
  renameSync(path, `${path}.away`)
  for (let n = 0; n < 20; n++)
    assertProblem(t, await request(`${service.url}/plants`, { body: { name: 'a', tag: '' } }), 503)
  await request(`${service.url}/last`)
  await lineOf(service, ({ url }) => url === '/last')
  const told = readLines(service).filter(({ level }) => level === 40)
  t.match(told, [{ msg: /put the same file back/ }])
  t.equal(told.length, 1)
})

test('a 500 has its error in the log', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t), { logger: pino({ level: 'silent' }) })
  const log = { ...store.log, head: () => Promise.reject(new TypeError('an odd fault')) }
  const lines: Line[] = []
  const logger = pino({}, { write: (line) => void lines.push(JSON.parse(line)) })
  const { url } = await startApp(t, '', { store: { ...store, log }, logger })
  for (let n = 1; n <= 2; n++) {
    assertProblem(t, await request(`${url}/plants`), 500)
    t.equal(lines.length, n, 'each time')
    t.match(lines.at(-1), { level: 50, err: { type: 'TypeError', message: 'an odd fault', stack: /\n/ } })
  }
})

/** Makes lines of more than 1 KB each, by requests for which there is nothing. */
async function makeLines(t: Test, { url }: Service, count: number): Promise<void> {
  const perConnection = 10
  const target = (n: number) => `/${n}-${'x'.repeat(1000)}`
  for (let from = 0; from < count; from += perConnection) {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    t.teardown(() => socket.destroy())
    const last = from + perConnection - 1
    for (let n = from; n <= last; n++)
      socket.write(compose({ target: target(n), headers: n === last ? { Connection: 'close' } : {} }))
    await once(socket.resume(), 'close')
  }
}

test('no line is lost when the reader of the log pauses', async (t) => {
  const service = await startService(t, {}, createDirectory(t))
  service.child.stderr.pause()
  const count = 1000
  await makeLines(t, service, count)
  service.child.stderr.resume()
  await request(`${service.url}/last`)
  await lineOf(service, ({ url }) => url === '/last')
  t.equal(readLines(service).filter(({ url }) => /^\/\d+-x+$/.test(String(url))).length, count)
})

test('a log that nobody reads holds 8 MiB at most, and whole lines', async (t) => {
  const service = await startService(t, {}, createDirectory(t))
  service.child.stderr.pause()
  // Twice of what is held, and a reader's pipe.
  const count = 12_000
  await makeLines(t, service, count)
  t.equal((await request(`${service.url}/plants`)).text, '[]', 'the service goes on')
  service.child.stderr.resume()
  // What is asked for while there is no room has no line either.
  await until(async () => {
    await request(`${service.url}/last`)
    return readLines(service).some(({ url }) => url === '/last')
  })
  const kept = readLines(service).filter(({ url }) => /^\/\d+-x+$/.test(String(url)))
  const bytes = service.output().stderr.length
  t.ok(kept.length < count, `${kept.length} lines`)
  const { lines = 0 } = await lineOf(service, ({ msg }) => /lines of the log were dropped/.test(msg))
  t.ok(lines >= count - kept.length, `${lines} lines are said to be missing`)
  t.ok(bytes > 6 * mebibyte && bytes < 10 * mebibyte, `${bytes} bytes, with those in the pipe`)
  service.child.kill('SIGTERM')
  t.match(await service.ended, { code: 0 })
})

test('a log that nobody reads does not keep a service from ending', async (t) => {
  const service = await startService(t, {}, createDirectory(t))
  service.child.stderr.pause()
  await makeLines(t, service, 1500)
  const ended = once(service.child, 'exit', { signal: AbortSignal.timeout(patienceMs) })
  service.child.kill('SIGTERM')
  t.same(await ended, [null, 'SIGTERM'])
})

test('a log whose reader has gone counts its lines as dropped, and a service ends with 0', async (t) => {
  const [ADMIN_PORT] = await findPorts(1)
  const service = await startService(t, { ADMIN_PORT: `${ADMIN_PORT}` }, createDirectory(t))
  service.child.stderr.destroy()
  const dropped = async () => {
    const { text } = await ask(`http://127.0.0.1:${ADMIN_PORT}/metrics`)
    return Number(/^plant_store_log_lines_dropped_total (\d+)/m.exec(text)?.[1])
  }
  // The first lines are on their way when it shows.
  for (const signal = AbortSignal.timeout(patienceMs); (await dropped()) === 0; signal.throwIfAborted())
    t.equal((await request(`${service.url}/plants`)).status, 200)
  service.child.kill('SIGTERM')
  t.match(await service.ended, { code: 0, signal: null })
})

const cli = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))
const noFullDisk = existsSync('/dev/full') ? false : '/dev/full is not there'

test('a log on a full disk does not keep a service from ending', { skip: noFullDisk }, async (t) => {
  const full = openSync('/dev/full', 'w')
  const env = { ...inherited(), PORT: '0', ACCESS_TOKENS: token }
  const child = spawn(process.execPath, [cli, 'serve'], {
    cwd: createDirectory(t),
    env,
    stdio: ['ignore', 'pipe', full],
  })
  closeSync(full)
  noteProcess(child)
  t.teardown(() => child.kill('SIGKILL'))
  const ended = once(child, 'close', { signal: AbortSignal.timeout(patienceMs) })
  const url = await listeningOn(child)
  t.equal((await request(`${url}/plants`)).status, 200)
  child.kill('SIGTERM')
  t.same(await ended, [0, null])
})
