// MAX_CONNECTIONS, KEEP_ALIVE, and what happens when no file descriptor is left.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import { type Test, test } from 'tap'
import { ConnectionLimit, deriveMax, readDescriptorLimit } from '../../src/http/max-connections.ts'
import { makeShared } from '../../src/service/shared.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { noteProcess } from '../support/leftovers.ts'
import { listeningOn } from '../support/listening.ts'
import { assertProblem } from '../support/problem.ts'
import { inherited } from '../support/processes.ts'
import { type Running, request, startApp, startService, token } from '../support/service.ts'
import { patienceMs, until } from '../support/until.ts'
import { compose, exchange, readAnswers, send } from '../support/wire.ts'

type Line = { msg: string; max: number; open: number; refused: number }
type Limited = Running & { connections: ConnectionLimit; lines: Line[] }

/** Starts an app that serves so many connections. */
async function startLimited(t: Test, max: number, descriptors = 1000, threads = 1): Promise<Limited> {
  const lines: Line[] = []
  const logger = pino({}, { write: (line) => lines.push(JSON.parse(line)) })
  const connections = new ConnectionLimit({ max, logger, descriptors, ...makeShared(threads) })
  const running = await startApp(t, await sqlite.createDatabase(t), { connections, logger })
  return { ...running, connections, lines }
}

/** Connections that have been served, and have begun another request. */
async function occupy(t: Test, port: number, count: number): Promise<Socket[]> {
  const sockets: Socket[] = []
  for (let n = 0; n < count; n++) {
    const socket = await open(t, port)
    socket.write(compose({ target: '/plants?limit=0' }))
    await once(socket, 'data')
    const headers = { Expect: '100-continue', 'Content-Type': 'application/json', 'Content-Length': '9' }
    socket.write(compose({ method: 'POST', headers }))
    await once(socket, 'data')
    sockets.push(socket)
  }
  return sockets
}

async function open(t: Test, port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).setEncoding('latin1')
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

test('beyond MAX_CONNECTIONS a connection is answered 503 and closed, until another one ends', async (t) => {
  const { port, connections } = await startLimited(t, 2)
  const [first] = await occupy(t, port, 2)
  const posted = compose({ body: JSON.stringify({ name: 'Alder', tag: '' }) })
  for (const bytes of [compose(), posted]) {
    const answer = await send(port, bytes)
    t.match(assertProblem(t, answer, 503), { type: '/problems/overloaded', detail: /connections/ })
    t.equal(answer.headers.get('connection'), 'close')
    t.match(answer.headers.get('retry-after'), /^\d+$/)
  }
  t.match(connections, { max: 2, open: 2, refused: 2 })
  first?.destroy()
  let status = 503
  for (let n = 0; status === 503 && n < 1000; n++) status = (await send(port, compose())).status
  t.equal(status, 200)
})

test('the connection that has been idle longest makes room for another', async (t) => {
  const { port, connections } = await startLimited(t, 4)
  const [busy] = await occupy(t, port, 1)
  const silent = await open(t, port)
  const [older, newer] = [await open(t, port), await open(t, port)]
  for (const socket of [newer, older]) {
    socket.write(compose({ target: '/plants?limit=0' }))
    await once(socket, 'data')
  }
  // The one that never said anything, then those that were served, in that order.
  for (const idle of [silent, newer, older]) {
    const gone = once(idle.resume(), 'close')
    const [answer] = await exchange(port, compose({ headers: { Connection: 'close' } }))
    t.equal(answer?.status, 200)
    idle.end()
    await gone
    await occupy(t, port, 1)
  }
  t.match(await send(port, compose()), { status: 503 }, 'none is idle')
  busy?.write('{"name":1}'.slice(0, 9))
  t.match(readAnswers(String((await once(busy as Socket, 'data'))[0])), [{ status: 400 }])
  t.equal(connections.refused, 1)
})

test('an idle connection of another thread makes room as well', async (t) => {
  // Two apps of one process, which count together as the threads of a service do: which of them is asked is known.
  const shared = makeShared(2)
  const database = await sqlite.createDatabase(t)
  const env = { MAX_CONNECTIONS: '2' }
  const [first, second] = [
    await startApp(t, database, { env, shared }),
    await startApp(t, database, { env, shared: { ...shared, thread: 1 } }),
  ]
  const sockets = [await open(t, first.port), await open(t, first.port)]
  const closed = sockets.map((socket) => new Promise((gone) => socket.resume().once('end', gone)))
  // A thread tells the others now and then how many of its connections are idle.
  await until(async () => (await send(second.port, compose())).status === 200)
  await Promise.race(closed)
})

test('a refused client gets the whole answer, however much it sends meanwhile', async (t) => {
  const { port } = await startLimited(t, 1)
  await occupy(t, port, 1)
  const socket = await open(t, port)
  socket.write(compose({ headers: { 'Content-Length': '10000000' } }))
  socket.write(Buffer.alloc(1_000_000, ' '))
  const [answer] = readAnswers(await text(socket))
  assertProblem(t, answer as never, 503)
})

test('a refused client that sends nothing is told so, too', async (t) => {
  const { port, app } = await startLimited(t, 1)
  await occupy(t, port, 1)
  const silent = await open(t, port)
  t.match(readAnswers(await text(silent)), [{ status: 503 }])
  const finished = await open(t, port)
  finished.end()
  t.match(readAnswers(await text(finished)), [{ status: 503 }])
  const last = await open(t, port)
  await Promise.all([once(last.resume(), 'end'), app.close()])
})

test('a request that arrives after the 503 does not destroy that answer', async (t) => {
  const { port, app } = await startLimited(t, 1)
  await occupy(t, port, 1)
  const connected = once(app.server, 'connection')
  const socket = await open(t, port)
  const [refused] = (await connected) as [Socket]
  t.match(readAnswers(await text(socket)), [{ status: 503 }])
  const dropped = once(refused, 'data')
  socket.write(compose())
  await dropped
  t.notOk(refused.destroyed, 'a reset would reach the client before it has read')
  const faults: Error[] = []
  refused.on('error', (error) => faults.push(error))
  const closed = once(refused, 'close')
  socket.end()
  await closed
  t.same(faults, [], 'and its end is not answered again')
})

test('a client that stays after its last answer is disconnected', { timeout: 15_000 }, async (t) => {
  const { app, port } = await startApp(t, await sqlite.createDatabase(t))
  const connected = once(app.server, 'connection')
  const socket = await open(t, port)
  const [served] = (await connected) as [Socket]
  const closed = once(served, 'close')
  socket.write('no request\r\n\r\n')
  t.match(readAnswers(await text(socket)), [{ status: 400 }])
  await closed
})

test('the answer to a refused HEAD request has no body', async (t) => {
  const { port } = await startLimited(t, 1)
  await occupy(t, port, 1)
  const [answer] = await exchange(port, compose({ method: 'HEAD' }), 2)
  t.match(answer, { status: 503, text: '' })
})

test('refused connections are one line in the log, not one each', async (t) => {
  const { port, lines } = await startLimited(t, 1)
  await occupy(t, port, 1)
  for (let n = 0; n < 20; n++) t.equal((await send(port, compose())).status, 503)
  t.match(lines, [{ msg: /^MAX_CONNECTIONS is reached/, max: 1, open: 1, refused: 1 }])
  t.equal(lines.length, 1)
})

test('refused connections that stay open do not pile up', { timeout: patienceMs }, async (t) => {
  // A tenth of these descriptors, for two threads: one connection for each.
  const { port, connections } = await startLimited(t, 1, 20, 2)
  await occupy(t, port, 1)
  const patient = await open(t, port)
  const [error] = await once(connect(port, '127.0.0.1'), 'error')
  t.equal(error.code, 'ECONNRESET')
  t.equal(connections.refused, 2)
  t.match(readAnswers(String((await once(patient, 'data'))[0])), [{ status: 503 }])
  patient.resetAndDestroy()
  // The one that went leaves its place to another.
  let answers = await exchange(port, compose()).catch(() => [])
  for (let n = 0; answers.length === 0 && n < 1000; n++)
    answers = await exchange(port, compose()).catch(() => [])
  t.match(answers, [{ status: 503 }])
})

test('the limit is derived from the file descriptors', async (t) => {
  const directory = createDirectory(t)
  const read = (content: string) => {
    const path = join(directory, 'limits')
    writeFileSync(path, content)
    return readDescriptorLimit(path)
  }
  const list = (soft: string) =>
    `Max processes 7 9 processes\nMax open files            ${soft}  4096  files\n`
  t.same(
    [read(list('1024')), read(list('unlimited')), readDescriptorLimit(join(directory, 'none'))],
    [1024, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  )
  t.same([1, 64, 1024, 20_000, Number.POSITIVE_INFINITY].map(deriveMax), [1, 28, 460, 9000, 1000])
  const logger = pino({ level: 'silent' })
  const { max } = new ConnectionLimit({ max: undefined, logger, ...makeShared(1) })
  const descriptors = readDescriptorLimit()
  t.ok(max > 0 && max < descriptors / 2, `${max} of ${descriptors}`)
})

test('KEEP_ALIVE says how long an idle connection stays', async (t) => {
  const { port } = await startApp(t, await sqlite.createDatabase(t), { env: { KEEP_ALIVE: '0' } })
  const [socket] = await occupy(t, port, 1)
  await once(socket as Socket, 'end')
  const { url } = await startApp(t, await sqlite.createDatabase(t), { env: { KEEP_ALIVE: '7' } })
  const { headers } = await request(`${url}/plants`)
  t.equal(headers.get('keep-alive'), 'timeout=7')
})

test('the admin server answers while the service has all the connections it takes', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  const { url, child, output } = await startService(t, {
    DATABASE_URL,
    MAX_CONNECTIONS: '1',
    ADMIN_PORT: '0',
  })
  const port = Number(new URL(url).port)
  await occupy(t, port, 1)
  t.equal((await send(port, compose())).status, 503)
  while (!/admin on/.test(output().stdout)) await once(child.stdout, 'data')
  const admin = /admin on (\S+)/.exec(output().stdout)?.[1]
  for (const path of ['livez', 'readyz', 'metrics'])
    t.equal((await fetch(`${admin}/${path}`)).status, 200, path)
})

const cli = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))

test('a service without free descriptors says so, and continues when there are some', async (t) => {
  const child = spawn('sh', ['-c', 'ulimit -n 64; exec "$@"', 'sh', process.execPath, cli, 'serve'], {
    env: {
      ...inherited(),
      DATABASE_URL: await sqlite.createDatabase(t),
      PORT: '0',
      ACCESS_TOKENS: token,
      MAX_CONNECTIONS: '1000',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  noteProcess(child)
  t.teardown(() => child.kill('SIGKILL'))
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (chunk) => (log += chunk))
  const port = Number(new URL(await listeningOn(child)).port)
  const sockets = await Promise.all(Array.from({ length: 200 }, () => open(t, port)))
  // The system closes those for which there is no descriptor.
  const isOver = Promise.withResolvers<void>()
  let closed = 0
  for (const socket of sockets) socket.resume().once('end', () => ++closed === 100 && isOver.resolve())
  await isOver.promise
  await until(() => /hardly any file descriptor is left/.test(log))
  for (const socket of sockets) socket.destroy()
  let status = 0
  for (let n = 0; status !== 200 && n < 1000; n++)
    status = await send(port, compose()).then(
      (answer) => answer.status,
      () => 0,
    )
  t.equal(status, 200)
  child.kill('SIGTERM')
  t.match(await once(child, 'close'), [0, null])
  const count = (message: string) => log.split(message).length - 1
  t.equal(count('MAX_CONNECTIONS 1000: this process may open 64 file descriptors in all'), 1)
  t.equal(count('hardly any file descriptor is left'), 1, log.slice(0, 2000))
})
