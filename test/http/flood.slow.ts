// Floods of requests in a row, and of unknown tokens, from many connections: others wait a second at most, memory grows by
// 256 MiB at most, and a good token that was never seen gets in, on a connection of its own.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { type Test, test } from 'tap'
import { makeToken } from '../../src/tokens/format.ts'
import { Tokens } from '../../src/tokens/tokens.ts'
import { createDirectory, engines } from '../support/engines.ts'
import { noteProcess } from '../support/leftovers.ts'
import { startService } from '../support/service.ts'
import { openStore } from '../support/sql-store.ts'
import { experience, percentile, residentBytes } from './neighbour.ts'

const mebibyte = 2 ** 20
const floodMs = 4000
const distinct = 10_000
const maxWaitMs = 1000
/** A new connection waits behind those that the flood has opened before it. */
const maxWaitAnewMs = 2000
const maxGrowthBytes = 256 * mebibyte

type Flood = { title: string; begin?: string; block: string; connections: number; distinct?: number }

const get = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const list = 'GET /plants HTTP/1.1\r\nHost: a\r\n\r\n'
const post = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx'
const unknown = () => `GET /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${makeToken().token}\r\n\r\n`
const fill = (request: string) => request.repeat(Math.ceil(65_536 / request.length))

const floods: Flood[] = [
  {
    title: 'behind an upgrade',
    begin: `${list.slice(0, -2)}Upgrade: x\r\n\r\n`,
    block: fill(get),
    connections: 1,
  },
  {
    title: 'behind a chunked body',
    begin: `${list.slice(0, -2).replace('GET', 'POST')}Transfer-Encoding: chunked\r\n\r\n`,
    block: fill(get),
    connections: 1,
  },
  ...[1, 2, 8, 500].map((connections) => ({ title: 'in a row', block: fill(get), connections })),
  { title: 'without a token in a row', block: fill(list), connections: 500 },
  { title: 'with bodies in a row', block: fill(post), connections: 500 },
  {
    title: 'unknown tokens, ten in a row',
    block: Array.from({ length: distinct }, unknown).join(''),
    distinct,
    connections: 500,
  },
]

/** Sends it from a process of its own, so that those who wait are not held up by the flood's own work. */
async function send(t: Test, port: number, flood: Flood): Promise<void> {
  const child = fork(new URL('./flooder.ts', import.meta.url), { serialization: 'advanced' })
  noteProcess(child)
  t.teardown(() => child.kill('SIGKILL'))
  child.send({ ...flood, port, floodMs })
  await once(child, 'exit')
}

/** Asks on a connection of its own, behind those of the flood that wait to be accepted; resolves to the status. */
async function askAnew(url: string, token: string): Promise<number> {
  const asked = request(url, { agent: false, headers: { authorization: `Bearer ${token}` } }).end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  answer.resume()
  return answer.statusCode as number
}

for (const engine of engines)
  for (const THREADS of ['1', '2'])
    test(`${engine.name}, THREADS=${THREADS}: others are served beside a flood`, {
      timeout: 300_000,
    }, async (t) => {
      const DATABASE_URL = await engine.createDatabase(t)
      const store = await openStore(DATABASE_URL, { logger: pino({ level: 'silent' }) })
      t.teardown(() => store.close())
      const tokens = new Tokens(store.tokens)
      const token = await tokens.create({ name: 'good' })
      const env = { DATABASE_URL, THREADS, LOG_LEVEL: 'fatal' }
      const { url, child } = await startService(t, env, createDirectory(t))
      const pid = child.pid as number
      const asked = { url: `${url}/plants?limit=1`, token, pid, after: 30 }
      await experience(asked, async () => {})
      for (const flood of floods) {
        const before = residentBytes(pid)
        let freshMs = 0
        const seen = await experience(asked, async () => {
          const sent = send(t, Number(new URL(url).port), flood)
          await sleep(floodMs / 2)
          const fresh = await tokens.create({ name: `${flood.title} ${flood.connections}` })
          const startMs = performance.now()
          for (let status = 0; status !== 200; ) status = await askAnew(asked.url, fresh)
          freshMs = performance.now() - startMs
          await sent
        })
        const [p50, p99, max] = [50, 99, 100].map((percent) => Math.round(percentile(seen.waitsMs, percent)))
        const grown = seen.peakBytes - before
        const title = `${flood.connections} × ${flood.title}`
        t.comment(
          `${title}: p50 ${p50}, p99 ${p99}, max ${max} ms, fresh token ${Math.round(freshMs)} ms, + ${Math.round(grown / mebibyte)} MiB`,
        )
        t.same([...seen.statuses], [200], `${title}: everybody else is served`)
        t.ok(max !== undefined && max <= maxWaitMs, `${title}: soon`)
        t.ok(freshMs <= maxWaitAnewMs, `${title}: a token that was never seen gets in anew`)
        t.ok(grown <= maxGrowthBytes, `${title}: memory is bounded`)
      }
    })
