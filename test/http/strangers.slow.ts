// What strangers do to others, in figures: attackers without a token on 127.0.0.2, a good client on 127.0.0.3.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { createDirectory } from '../support/engines.ts'
import { noteProcess } from '../support/leftovers.ts'
import { startService, token } from '../support/service.ts'
import type { Order } from './stranger.ts'

const attacker = '127.0.0.2'
const client = '127.0.0.3'
const mebibyte = 2 ** 20

async function start(
  t: Test,
  env: NodeJS.ProcessEnv = {},
): Promise<{ port: number; script: string; pid: number }> {
  const { url, child } = await startService(
    t,
    { LOG_LEVEL: 'fatal', HOST: '127.0.0.1', ...env },
    createDirectory(t),
  )
  const page = await (await fetch(`${url}/docs`)).text()
  const script = /[^"]*swagger-ui\.js/.exec(page)?.[0] as string
  return { port: Number(new URL(url).port), script, pid: child.pid as number }
}

function attack(t: Test, order: Partial<Order> & { port: number; forMs: number }): Promise<unknown> {
  const child = fork(new URL('./stranger.ts', import.meta.url))
  noteProcess(child)
  t.teardown(() => child.kill('SIGKILL'))
  child.send({ localAddress: attacker, bytes: '', connections: 0, perSecond: 0, ...order })
  return once(child, 'exit')
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`

/** A good request on a connection of its own, whose head comes `delayMs` after the connection; its status, or 0. */
async function ask(port: number, delayMs = 0): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  const options = {
    host: '127.0.0.1',
    port,
    path: '/plants?limit=1',
    headers,
    localAddress: client,
    agent: false,
    timeout: 2000,
  }
  const outgoing = request(options)
  outgoing.on('timeout', () => outgoing.destroy())
  if (delayMs > 0) {
    const [socket] = await once(outgoing, 'socket')
    await once(socket, 'connect')
    await sleep(delayMs)
  }
  outgoing.end()
  return once(outgoing, 'response').then(
    ([answer]) => {
      answer.resume()
      return answer.statusCode
    },
    () => 0,
  )
}

async function count(times: number, work: () => Promise<number>): Promise<number> {
  let good = 0
  for (let n = 0; n < times; n++) if ((await work()) === 200) good++
  return good
}

test('documents that nobody reads lock nobody out', { timeout: 60_000 }, async (t) => {
  const { port, script } = await start(t, { MAX_CONNECTIONS: '60' })
  const bytes = get(script).repeat(8)
  void attack(t, { port, bytes, connections: 75, perSecond: 20, forMs: 15_000 })
  await sleep(1000)
  const good = await count(100, () => ask(port))
  t.comment(`8 documents unread on 75 connections, MAX_CONNECTIONS=60: ${good} of 100 good requests`)
  t.equal(good, 100)
})

test('a flood of silent connections closes those of nobody else', { timeout: 60_000 }, async (t) => {
  const { port } = await start(t, { MAX_CONNECTIONS: '460' })
  void attack(t, { port, connections: 460, perSecond: 1600, forMs: 20_000 })
  await sleep(1000)
  const good = await count(40, () => ask(port, 300))
  t.comment(`1,600 silent connections a second: ${good} of 40 requests that begin after 300 ms`)
  t.ok(good >= 38)
})

/** Processor time of the service's thread: what others on the machine take does not count (proc(5), schedstat). */
function workedMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ', 1)[0]) / 1e6
}

function kernelBytes(): number {
  const [, pages] = /^TCP:.* mem (\d+)/m.exec(readFileSync('/proc/net/sockstat', 'utf8')) ?? []
  return Number(pages) * 4096
}

for (const times of [1, 8])
  test(`unread documents (${times} on each connection) hold little memory`, {
    timeout: 60_000,
  }, async (t) => {
    const { port, script } = await start(t)
    const before = kernelBytes()
    const over = attack(t, {
      port,
      bytes: get(script).repeat(times),
      connections: 400,
      perSecond: 0,
      forMs: 12_000,
    })
    let most = 0
    let late = 0
    const endMs = performance.now() + 11_000
    while (performance.now() < endMs) {
      await sleep(50)
      late = (kernelBytes() - before) / mebibyte
      most = Math.max(most, late)
    }
    t.comment(
      `${times} × 400 unread documents: ${most.toFixed()} MiB in the kernel, ${late.toFixed()} after 11 s`,
    )
    t.ok(most <= 300)
    t.ok(late <= 30)
    await over
  })

/** Sends bytes on so many connections at once; resolves when all of them are closed. */
async function sendAtOnce(port: number, bytes: string, times: number): Promise<void> {
  const sent = Array.from({ length: times }, async () => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: attacker }).resume()
    socket.on('error', () => {}).end(bytes)
    await new Promise((closed) => socket.once('close', closed))
  })
  await Promise.all(sent)
}

/** Repeated, each is the worst for some pattern or parser. */
const pieces = [
  ...[',', ' ', '\t', ';', '/', '-', '0', '(', '..', '%', '%41', '&', 'a=', 'é'],
  ...[':,[', '[', '1:', '1::', '"', '",', '"\\', 'W/"', '*,', ';q=0,', 'a;q=', '{"":', '"\\u0'],
]
const headers = [
  ...['Host', 'Connection', 'Upgrade', 'Transfer-Encoding', 'Content-Length', 'Expect', 'Authorization'],
  ...['Content-Type', 'Content-Encoding', 'Accept', 'Accept-Encoding', 'If-Match', 'If-None-Match'],
  ...[
    'X-Request-Id',
    'X-Forwarded-For',
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'Traceparent',
    'Tracestate',
  ],
  ...['Origin', 'Access-Control-Request-Method', 'Access-Control-Request-Headers'],
]
const maxWaitMs = 250
/** What comes in a second, at one moment. */
const atOnce = 20

/** Requests of 16 KB with much of a piece: in each header, in the query, the path and the body. */
function composeAll(piece: string): [title: string, bytes: string][] {
  const fill = (bytes: number) => piece.repeat(bytes / Buffer.byteLength(piece))
  const usual = { Host: 'a', Authorization: `Bearer ${token}`, Connection: 'close' }
  const compose = (start: string, given: Record<string, string>, body = '') =>
    `${start} HTTP/1.1\r\n${Object.entries({ ...usual, ...given })
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')}\r\n${body}`
  const target = fill(8000).replaceAll(/\s/g, '+')
  const body = fill(16_384)
  const json = { 'Content-Type': 'application/json', 'Content-Length': `${Buffer.byteLength(body)}` }
  return [
    ...headers.map((name): [string, string] => {
      const start = name === 'Authorization' ? 'Bearer ' : ''
      return [name, compose('GET /plants', { [name]: start + fill(15_500) })]
    }),
    [
      'preflight',
      compose('OPTIONS /plants', {
        Origin: fill(5000),
        'Access-Control-Request-Method': fill(5000),
        'Access-Control-Request-Headers': fill(5000),
      }),
    ],
    ['document', compose('GET /docs', { 'Accept-Encoding': fill(7500), 'If-None-Match': fill(7500) })],
    ['query', compose(`GET /plants?${target}`, {})],
    ['limit', compose(`GET /plants?limit=${target}`, {})],
    ['after', compose(`GET /plants?after=${target}`, {})],
    ['path', compose(`GET /${target}`, {})],
    ['body', compose('POST /plants', json, body)],
  ]
}

for (const TRUST_PROXY of ['off', 'loopback', 'true'])
  test(`TRUST_PROXY=${TRUST_PROXY}: nothing in a head or a body keeps others waiting`, {
    timeout: 900_000,
  }, async (t) => {
    const env = { TRUST_PROXY, CORS_ORIGIN: 'https://a.example,https://b.example', AUTH_FAILURE_LIMIT: 'off' }
    const { port, pid } = await start(t, env)
    const waits: [title: string, waitMs: number][] = []
    for (const piece of pieces)
      for (const [title, bytes] of composeAll(piece)) {
        const sent = sendAtOnce(port, bytes, atOnce)
        await sleep(1)
        const startMs = workedMs(pid)
        await ask(port)
        waits.push([`${title} of ${JSON.stringify(piece)}`, workedMs(pid) - startMs])
        await sent
      }
    const [worst, next] = waits.sort(([, a], [, b]) => b - a)
    t.comment(
      `TRUST_PROXY=${TRUST_PROXY}: ${worst?.[0]} ${worst?.[1].toFixed()} ms, ${next?.[0]} ${next?.[1].toFixed()} ms`,
    )
    t.ok((worst?.[1] as number) <= maxWaitMs)
  })
