// What strangers do to others: whoever has no token gives way, by the address that most connections and bytes belong to.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import pino from 'pino'
import { type Test, test } from 'tap'
import { problems } from '../../schemas/problems.ts'
import '../support/short-limits.ts'
import type { WireAnswer } from '../support/wire.ts'

const { createDirectory, sqlite } = await import('../support/engines.ts')
const { assertProblem } = await import('../support/problem.ts')
const { request, startApp, startService, startThreads } = await import('../support/service.ts')
const { compose, exchange, readAnswers, send } = await import('../support/wire.ts')
const { until } = await import('../support/until.ts')

const [attacker, client] = ['127.0.0.2', '127.0.0.3']
const anonymous = { Authorization: undefined }

async function open(t: Test, port: number, localAddress: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true })
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** Asks for as many documents in a row on one connection, and reads none of them. */
async function openUnread(t: Test, port: number, target: string): Promise<Socket> {
  const socket = await open(t, port, attacker)
  const bytes = compose({ target, headers: anonymous })
  socket.pause().write(Buffer.concat(Array.from({ length: 8 }, () => bytes)))
  return socket
}

/** The path of the largest document. */
async function findScript(url: string): Promise<string> {
  return /[^"]*swagger-ui\.js/.exec((await request(`${url}/docs`)).text)?.[0] as string
}

/** Resolves to the answer to a request on an open connection. */
async function ask(socket: Socket, bytes = compose({ target: '/plants?limit=0' })): Promise<WireAnswer> {
  socket.write(bytes)
  for (let received = ''; ; ) {
    received += (await once(socket, 'data'))[0]
    const [answer] = readAnswers(received)
    if (answer) return answer
  }
}

test('the address that has most connections makes room, whoever has been idle longest', async (t) => {
  const { port } = await startApp(t, await sqlite.createDatabase(t), { env: { MAX_CONNECTIONS: '4' } })
  const good = await open(t, port, client)
  t.match(await ask(good), { status: 200 })
  const silent = [await open(t, port, attacker), await open(t, port, attacker), await open(t, port, attacker)]
  const gone = silent.map((socket) => once(socket.resume(), 'end'))
  for (const [n] of silent.entries()) {
    const other = await open(t, port, n === 0 ? client : attacker)
    t.match(await ask(other), { status: 200 })
    await gone[n]
  }
  t.match(await ask(good), { status: 200 }, 'the one that came first is still served')
})

test('documents that nobody reads make room for others, the longest unread first', async (t) => {
  const { port, url } = await startApp(t, await sqlite.createDatabase(t), { env: { MAX_CONNECTIONS: '5' } })
  const script = await findScript(url)
  // The agent's own connection goes on.
  const unread = [await openUnread(t, port, script)]
  while (unread.length < 4) {
    await once(unread.at(-1) as Socket, 'readable')
    unread.push(await openUnread(t, port, script))
  }
  await once(unread.at(-1) as Socket, 'readable')
  const first = new Promise((gone) => unread[0]?.once('close', gone))
  const others = [await open(t, port, client), await open(t, port, client)]
  for (const other of others) t.match(await ask(other), { status: 200 })
  unread[0]?.resume()
  await first
})

test('documents in flight are bounded for each address without a token, and are cut when nobody reads', async (t) => {
  const { port, url } = await startApp(t, await sqlite.createDatabase(t))
  const script = await findScript(url)
  const headers = { ...anonymous, Connection: 'close', 'Accept-Encoding': 'br' }
  const bytes = compose({ target: script, headers })
  const sockets: Socket[] = []
  let refused = ''
  while (refused === '') {
    const socket = await open(t, port, attacker)
    sockets.push(socket)
    socket.write(bytes)
    await once(socket, 'readable')
    const first = String(socket.read(12))
    if (first.endsWith('503')) refused = first + String(socket.read())
  }
  const [answer] = readAnswers(refused)
  t.equal(assertProblem(t, answer as never, 503).detail, problems.tooManyBytes.detail)
  t.equal(answer?.headers.get('etag'), null)
  t.equal(answer?.headers.get('content-encoding'), null)
  t.equal((await request(`${url}${script}`)).status, 200, 'others have it')
  // What was sent is taken back when nobody has read it for a while: then there is room again.
  await until(async () => {
    const socket = await open(t, port, attacker)
    socket.setEncoding('latin1').write(bytes)
    const [head] = await once(socket, 'data')
    socket.destroy()
    return String(head).startsWith('HTTP/1.1 200')
  })
  for (const socket of sockets) socket.destroy()
})

test('what a client without a token has not taken yet is counted until its connection ends', async (t) => {
  const { port, url, metrics } = await startThreads(t, await sqlite.createDatabase(t), { THREADS: '1' })
  const held = async () =>
    Number(/^plant_store_answer_bytes_in_flight (\d+)/m.exec(await metrics.write())?.[1])
  const socket = await open(t, port, attacker)
  socket.resume().write(compose({ target: await findScript(url), headers: anonymous }))
  await once(socket, 'end')
  t.ok((await held()) > 100_000)
  socket.destroy()
  await until(async () => (await held()) === 0)
})

test('a connection without a token ends after much that needs none, and says so', async (t) => {
  const { port, url } = await startApp(t, await sqlite.createDatabase(t))
  const script = await findScript(url)
  const [whole] = await exchange(port, compose({ target: script, headers: anonymous }), 2)
  t.match(whole, { status: 200 })
  t.equal(whole?.headers.get('connection'), 'close')
  const [head] = await exchange(port, compose({ method: 'HEAD', target: script, headers: anonymous }))
  t.equal(head?.headers.get('connection'), 'keep-alive')
  const socket = await open(t, port, attacker)
  let answers = 0
  for (let last = false; !last; answers++) {
    const { headers } = await ask(socket, compose({ target: '/nothing', headers: anonymous }))
    last = headers.get('connection') === 'close'
  }
  t.ok(answers > 16, `${answers} answers`)
  await once(socket, 'end')
})

test('a reader without a token that takes nothing is reset', { timeout: 60_000 }, async (t) => {
  const { url, child, logs } = await startService(t, {}, createDirectory(t))
  const port = Number(new URL(url).port)
  const socket = await openUnread(t, port, await findScript(url))
  await logs(/"reason":"stalled"/)
  const closed = new Promise((failed) => socket.once('close', failed))
  socket.resume()
  t.equal(await closed, true)
  child.kill('SIGTERM')
})

test('an X-Forwarded-For that is ignored is one line in the log', async (t) => {
  const lines: string[] = []
  const logger = pino({}, { write: (line) => void lines.push(JSON.parse(line).msg) })
  const { port } = await startApp(t, await sqlite.createDatabase(t), { logger })
  for (let n = 0; n < 3; n++) await send(port, compose({ headers: { 'X-Forwarded-For': ',['.repeat(7000) } }))
  t.equal(lines.filter((line) => /X-Forwarded-For .* TRUST_PROXY/.test(line)).length, 1)
})
