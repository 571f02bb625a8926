// One client cannot take the service from the others: whatever it asks for and leaves lying about, everybody else is
// answered soon, and memory stays bounded and comes back.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import pino from 'pino'
import tap, { type Test, test } from 'tap'
import { maxCachedBytes } from '../../src/limits.ts'
import { makeToken } from '../../src/tokens/format.ts'
import { Tokens } from '../../src/tokens/tokens.ts'
import { ask, findAdmin } from '../support/admin.ts'
import { createDirectory, type Engine, engines } from '../support/engines.ts'
import { assertWithin, isFull } from '../support/full.ts'
import { preload } from '../support/preload.ts'
import { startService } from '../support/service.ts'
import { openStore } from '../support/sql-store.ts'
import { experience, percentile, residentBytes } from './neighbour.ts'
import '../support/short-limits.ts'
import { until } from '../support/until.ts'
import { compose } from '../support/wire.ts'

/** Plants of 2 KB: what costs most to hold, and to send. Even the few are more than the buffers of a connection hold. */
const plants = isFull ? 30_000 : 10_000
const text = '🌿'.repeat(255)
/** How many pages a client asks for, how many clients there are, and how often others ask when the worst has come. */
const [pagesAsked, clients, after] = isFull ? [800, 100, 100] : [200, 20, 10]
const maxWaitMs = 1000
const stalledMs = 30_000
const sweepMs = 2000
const mebibyte = 2 ** 20
const maxGrowthBytes = 256 * mebibyte
/** Of what is in use, cached pages with it: garbage is left to V8, which lets 64 MiB of buffers lie, and to malloc. */
const maxRestBytes = maxCachedBytes + 8 * mebibyte

/** Has a process collect its garbage at a signal. */
const collecting = preload(`
  import { setFlagsFromString } from 'node:v8'
  import { runInNewContext } from 'node:vm'
  setFlagsFromString('--expose-gc')
  process.on('SIGUSR2', runInNewContext('gc'))`).NODE_OPTIONS

const filled = new Map<Engine, ReturnType<typeof fill>>()

type Running = Awaited<ReturnType<typeof start>>

/** The URL of a store with all the plants, and a good token of it. Nobody adds to it. */
async function fill(engine: Engine): Promise<[DATABASE_URL: string, good: string]> {
  const DATABASE_URL = await engine.createDatabase(tap)
  const store = await openStore(DATABASE_URL, { logger: pino({ level: 'silent' }) })
  const item = JSON.stringify({ name: text, tag: text })
  for (let n = 0; n < plants; n += 1000)
    await store.log.append(Array.from({ length: 1000 }, () => ({ item, id: undefined })))
  const good = await new Tokens(store.tokens).create({ name: 'good' })
  await store.close()
  return [DATABASE_URL, good]
}

async function start(t: Test, engine: Engine, LOG_LEVEL = 'fatal') {
  const store = filled.get(engine) ?? fill(engine)
  filled.set(engine, store)
  const [DATABASE_URL, good] = await store
  const NODE_OPTIONS = [process.env.TEST_NODE_OPTIONS, collecting].join(' ')
  const env = { DATABASE_URL, LOG_LEVEL, NODE_OPTIONS, ADMIN_PORT: '0' }
  const service = await startService(t, env, createDirectory(t))
  const { url, child, output } = service
  const pid = child.pid as number
  const admin = await findAdmin(service)
  const cut = new Promise<void>((resolve) => {
    const stalled = /"reason":"stalled","requestId":.*"msg":"connection"/
    child.stderr.on('data', () => stalled.test(output().stderr) && resolve())
  })
  /** Bytes of objects and buffers that something refers to. */
  const findUsed = async () => {
    process.kill(pid, 'SIGUSR2')
    const { text } = await ask(`${admin}/metrics`)
    const read = (name: string) => Number(new RegExp(`^nodejs_${name}_bytes (\\d+)$`, 'm').exec(text)?.[1])
    return read('heap_size_used') + read('external_memory')
  }
  return { url, port: Number(new URL(url).port), pid, good, cut, findUsed }
}

async function open(port: number, bytes: string | Buffer): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(bytes)
  return socket
}

function pages(count: number): Buffer {
  return Buffer.concat(
    Array.from({ length: count }, (_, n) => compose({ target: `/plants?limit=${1000 + (n % 900)}` })),
  )
}

type Misuse = (running: Running) => Promise<Socket[]>

/** Each resolves to the connections that it leaves open, once the worst has come. */
const misuses: Record<string, Misuse> = {
  'pages in a row that nobody reads': async ({ port }) => [(await open(port, pages(pagesAsked))).pause()],
  '60 pages in a row for a client that has gone': async ({ port }) => {
    for (let n = 0; n < clients / 10; n++) {
      const socket = await open(port, pages(60))
      await new Promise((sent) => socket.write('\r\n', sent))
      socket.destroy()
    }
    return []
  },
  'readers who stop in the middle of the list': ({ port }) =>
    Promise.all(
      Array.from({ length: clients }, async () => {
        const socket = await open(port, compose())
        await once(socket, 'data')
        return socket.pause()
      }),
    ),
  'many lists at once': async ({ port }) => {
    const readers = Array.from({ length: clients }, async () => {
      const bytes = compose({ target: '/plants?limit=4000', headers: { Connection: 'close' } })
      const socket = await open(port, bytes)
      await once(socket.resume(), 'close')
    })
    await Promise.all(readers)
    return []
  },
  'connections with 4 long lists each': ({ port }) =>
    Promise.all(
      Array.from({ length: 8 * clients }, async (_, n) => {
        const lists = [1, 2, 3, 4].map((k) => compose({ target: `/plants?limit=${200 + 4 * n + k}` }))
        return (await open(port, Buffer.concat(lists))).pause()
      }),
    ),
  'connections with 10 made-up tokens each': async ({ port }) => {
    const flood = Array.from({ length: 5 * clients }, async () => {
      for (let n = 0; n < 10; n++) {
        const headers = { Authorization: `Bearer ${makeToken().token}`, Connection: 'close' }
        const socket = await open(port, compose({ target: '/plants?limit=0', headers }))
        await once(socket.resume(), 'close')
      }
    })
    await Promise.all(flood)
    return []
  },
}

for (const engine of engines)
  test(`${engine.name}: others are served beside`, { timeout: 300_000 }, async (t) => {
    const running = await start(t, engine)
    const { url, good, pid, findUsed } = running
    // What the first requests make it load is not the misuser's doing.
    await experience({ url: `${url}/plants?limit=100`, token: good, pid, after: 30 }, async () => {})
    const usedBefore = await findUsed()
    for (const [title, misuse] of Object.entries(misuses)) {
      const before = residentBytes(pid)
      let sockets: Socket[] = []
      // What a misuse leaves behind has time to do harm.
      const seen = await experience({ url: `${url}/plants?limit=1`, token: good, pid, after }, async () => {
        sockets = await misuse(running)
      })
      for (const socket of sockets) socket.resetAndDestroy()
      let rest = Number.POSITIVE_INFINITY
      await until(async () => {
        rest = (await findUsed()) - usedBefore
        return rest <= maxRestBytes
      })
      const grown = seen.peakBytes - before
      const waits = [50, 99, 100].map((percent) => percentile(seen.waitsMs, percent).toFixed())
      t.comment(
        `${title}: ${seen.waitsMs.length} waits, p50 ${waits[0]} ms, p99 ${waits[1]} ms, max ${waits[2]} ms, ` +
          `memory + ${(grown / mebibyte).toFixed()} MiB, in use afterwards + ${(rest / mebibyte).toFixed()} MiB`,
      )
      t.same([...seen.statuses], [200], `${title}: everybody else is served`)
      assertWithin(t, percentile(seen.waitsMs, 100), maxWaitMs, `${title}: the longest wait`)
      t.ok(grown <= maxGrowthBytes, `${title}: memory is bounded`)
    }
  })

test('a reader that takes nothing is disconnected, and does not see an end of the list', {
  timeout: 90_000,
}, async (t) => {
  const { port, cut } = await start(t, engines[0] as Engine, 'info')
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write(compose())
  await once(socket, 'data')
  socket.pause()
  const startMs = performance.now()
  await cut
  assertWithin(t, performance.now() - startMs, stalledMs + sweepMs, 'cut, and the log says why')
  const failed = once(socket, 'error')
  socket.resume()
  t.match(await failed, [{ code: 'ECONNRESET' }])
})
