// Long lists: complete, in parts of bounded size, and reset if they fail in the middle. The stored text of plants is a
// format: logs, ETags and retries contain it, so a change requires a new format number.
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { Plant } from '../../schemas/plant.ts'
import { itemFormat, longestItemBytes, serializeItem } from '../../src/plants/item.ts'
import { rangeOf } from '../../src/plants/names.ts'
import { Pages } from '../../src/plants/pages.ts'
import { shareHead } from '../../src/plants/shared-head.ts'
import type { Head, PlantLog } from '../../src/store/engine.ts'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { storeLimitMs } from '../../src/store/in-time.ts'
import { scopes } from '../../src/tokens/tokens.ts'
import { type Engine, engines, sqlite } from '../support/engines.ts'
import { MemoryLog } from '../support/memory-log.ts'
import { assertProblem } from '../support/problem.ts'
import { request, startApp } from '../support/service.ts'
import { countReads, openStore, unavailable } from '../support/stores.ts'
import { compose } from '../support/wire.ts'

const largest = serializeItem({ name: '🌿'.repeat(255), tag: '🌿'.repeat(255) })
/** The entries of a long list. */
const many = Array.from({ length: 300 }, () => ({ item: largest, id: undefined }))

test('sends a list of the largest plants in parts of at most 256 KiB', async (t) => {
  t.equal(Buffer.byteLength(largest), longestItemBytes(Plant), 'the longest plant that the schema allows')
  const store = await openStore(await sqlite.createDatabase(t))
  const items: string[] = Array(3000).fill(largest)
  await store.log.append(items.map((item) => ({ item, id: undefined })))
  const reads: { after: number; bytes: number }[] = []
  const read: typeof store.log.read = async (after, last, mark) => {
    const array = await store.log.read(after, last, mark)
    reads.push({ after, bytes: array.length })
    return array
  }
  const { url } = await startApp(t, '', { store: { ...store, log: { ...store.log, read } } })
  t.equal((await request(`${url}/plants`)).text, `[${items}]`)
  // The size of the plants is unknown at first, so the first read is too large, and is repeated.
  const parts = reads.slice(reads.findLastIndex(({ after }) => after === 0))
  t.equal(reads.length, parts.length + 1)
  t.ok(parts.length > 10)
  for (const { bytes } of parts) t.ok(bytes <= 256 * 1024, `${bytes} bytes`)
})

test('refuses a list that was ready too late for its token, and frees its slot', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t))
  await store.log.append(many)
  const verify = () => ({ id: 'late', scopes: new Set(scopes), untilMs: performance.now() - 3001 })
  const { url } = await startApp(t, '', { store, verify })
  for (let n = 0; n < 101; n++) t.match((await request(`${url}/plants`)).text, '/problems/unread')
})

test('each list waits for the head until its own limit', async (t) => {
  const { promise, resolve } = Promise.withResolvers<Head>()
  const readHead = shareHead({ head: () => promise } as unknown as PlantLog)
  const older = [readHead([])]
  await sleep(1)
  older.push(readHead([]))
  await sleep(storeLimitMs / 4)
  const later = readHead([])
  for (const head of older) await t.rejects(async () => head)
  resolve(await new MemoryLog([]).head())
  t.match(await later, { position: 0 })
})

test('reads no more of the lists whose clients have disconnected, and frees their slots', async (t) => {
  let reads = 0
  const log = new MemoryLog(many, async (step) => (reads += Number(step === 'read: asked for')))
  const pages = new Pages(log)
  const range = rangeOf(0, 300, await log.head())
  for (const coding of ['identity', 'gzip', 'identity'] as const) {
    const made = await Promise.all(Array.from({ length: 100 }, () => pages.get(range, [coding])))
    await t.rejects(async () => pages.get(range, [coding]), unavailable('overloaded'))
    const before = reads
    const lists = made.map(({ bytes }) => (bytes as Readable).resume())
    await new Promise(setImmediate)
    await Promise.all(lists.map((list) => once(list.destroy(), 'close')))
    // Each list closes in its turn.
    for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate)
    t.ok(reads - before < 10, `${reads - before} reads`)
  }
})

test('reads one part of all long lists per turn of the event loop, and at most six at once', async (t) => {
  let [reads, ended, most] = [0, 0, 0]
  const count = async (step: string) => {
    if (step === 'read: on its way') ended++
    if (step !== 'read: asked for') return
    most = Math.max(most, ++reads - ended)
    await sleep(10)
  }
  const log = new MemoryLog(many, count)
  const pages = new Pages(log)
  const range = rangeOf(0, 300, await log.head())
  const lists = await Promise.all(Array.from({ length: 20 }, () => pages.get(range, ['identity'])))
  const all = Promise.all(lists.map(({ bytes }) => text(bytes as Readable)))
  for (let before = reads; reads < 40; before = reads) {
    await new Promise(setImmediate)
    t.ok(reads - before <= 1, 'Node accepts one client per turn')
  }
  for (const list of await all) t.equal((JSON.parse(list) as unknown[]).length, 300)
  t.equal(most, 6)
})

test('reads a bounded number of plants at once, because the next ones may be longer', async (t) => {
  const log = new MemoryLog([{ item: '{}', id: undefined }])
  log.rows = Array(20_000).fill(log.rows[0])
  const [readAll, counts] = [log.read.bind(log), new Set<number>()]
  log.read = async (after, last, mark) => {
    counts.add(last - after)
    return readAll(after, last, mark)
  }
  const { bytes } = await new Pages(log).get(rangeOf(0, 20_000, await log.head()), ['identity'])
  t.equal((JSON.parse(await text(bytes as Readable)) as unknown[]).length, 20_000)
  t.equal(Math.max(...counts), 8128)
})

test('refuses a list as overloaded if 10,000 wait for the head, or 200 pages are being read', async (t) => {
  let reads = 0
  const log = new MemoryLog(many, async (step) => (reads += Number(step === 'read: asked for')))
  const [readHead, pages, head] = [shareHead(log), new Pages(log), await log.head()]
  const waiting = Array.from({ length: 10_000 }, () => readHead([0]))
  t.throws(() => readHead([0]), unavailable('overloaded'))
  for (const mark of [undefined, 'm\u0080'])
    t.throws(() => rangeOf(0, 1, { ...head, markOf: () => mark }), unavailable('unread'))
  t.equal((await Promise.all(waiting)).length, 10_000)
  const [last, ...reading] = Array.from({ length: 201 }, async (_, n) =>
    pages.get(rangeOf(n, n + 1, head), ['identity']),
  ).reverse()
  await t.rejects(last as Promise<unknown>, unavailable('overloaded'))
  t.equal((await Promise.all(reading)).length, 200)
  const list = (await pages.get(rangeOf(0, 300, head), ['identity'])).bytes as Readable
  const before = reads
  list.read(0)
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  t.equal(reads, before, 'one part is kept ready, no more')
  const ask = async () => (await pages.get(rangeOf(0, 2, head), ['br'])).bytes
  t.equal(await ask(), await ask(), 'compressed once, and kept')
})

/** A change here requires a new `itemFormat`, and a decision about plants that are already stored. */
const golden: [name: string, tag: string, text: string][] = [
  ['Alder', 'Alnus', '{"name":"Alder","tag":"Alnus"}'],
  ['a', '', '{"name":"a","tag":""}'],
  ['"', '\\', '{"name":"\\"","tag":"\\\\"}'],
  ["/ & <b> ' ", '\u2028\u2029', '{"name":"/ & <b> \' ","tag":"\u2028\u2029"}'],
  ['山椒', 'é e\u0301', '{"name":"山椒","tag":"é e\u0301"}'],
  ['🌿', '\ufeff\uffff\u00a0', '{"name":"🌿","tag":"\ufeff\uffff\u00a0"}'],
  ['"'.repeat(255), '🌿'.repeat(255), `{"name":"${'\\"'.repeat(255)}","tag":"${'🌿'.repeat(255)}"}`],
]

test('stores and sends plants in format 1, byte for byte', async (t) => {
  t.equal(itemFormat, 1)
  for (const [name, tag, text] of golden) {
    t.equal(serializeItem({ name, tag }), text)
    t.equal(serializeItem({ tag, name, id: 7 } as { name: string; tag: string }), text)
  }
  const { url } = await startApp(t)
  for (const [name, tag, text] of golden)
    t.equal((await request(`${url}/plants`, { body: { tag, name } })).text, text)
  const list = await request(`${url}/plants`)
  t.equal(list.text, `[${golden.map(([, , text]) => text).join()}]`)
  t.match(list.headers.get('etag'), new RegExp(`^W/"${itemFormat}\\.0-${golden.length}\\.`))
})

const plants = 60_000
const tag = 'x'.repeat(200)
const items = Array.from({ length: plants }, (_, n) => JSON.stringify({ name: `plant ${n + 1}`, tag }))
const expected = `[${items}]`

/** A store with a long log that counts the reads of its log. */
async function openFilled(t: Test, engine: Engine) {
  const store = await openStore(await engine.createDatabase(t))
  for (let n = 0; n < plants; n += 4000)
    await store.log.append(items.slice(n, n + 4000).map((item) => ({ item, id: undefined })))
  return countReads(store)
}

/** Requests the whole list and reads only its first bytes. */
async function startReading(port: number, bytes: Buffer | string = compose()) {
  const socket = connect(port, '127.0.0.1')
  socket.write(bytes)
  await once(socket, 'readable')
  return socket
}

/** Waits until a service has not read its store during ten requests. Resolves to the number of reads so far. */
async function quiet(url: string, reads: { count: number }): Promise<number> {
  let before = -1
  while (before !== reads.count) {
    before = reads.count
    for (let turn = 0; turn < 10; turn++) await request(`${url}/plants?limit=0`)
  }
  return reads.count
}

for (const engine of engines) {
  test(`${engine.name}: long lists`, async (t) => {
    const { store, reads } = await openFilled(t, engine)
    let lines = ''
    const write = (more: Uint8Array) => (lines += Buffer.from(more).toString())
    const { app, url, port } = await startApp(t, '', { store, write })

    await t.test('are sent whole, in order and as JSON', async (t) => {
      const whole = await request(`${url}/plants`)
      t.ok(whole.text === expected, 'byte-identical')
      t.equal(whole.headers.get('content-type'), 'application/json; charset=utf-8')
      const part = await request(`${url}/plants?limit=5001`)
      t.equal(part.text.length, JSON.stringify((whole.json() as unknown[]).slice(0, 5001)).length)
      const next = /<(.*)>/.exec(part.headers.get('link') ?? '')?.[1]
      t.equal(((await request(`${url}${next}`)).json() as unknown[]).length, 5001)
    })

    await t.test('are read only as fast as their clients read, until those disconnect', async (t) => {
      await request(`${url}/plants`)
      const start = reads.count
      await request(`${url}/plants`)
      const before = reads.count
      const whole = before - start
      const sockets = await Promise.all(Array.from({ length: 4 }, () => startReading(port)))
      const stalled = await quiet(url, reads)
      t.ok(
        stalled - before < 4 * 0.75 * whole,
        `${stalled - before} of ${4 * whole} parts were read for 4 stalled clients`,
      )
      for (const socket of sockets) socket.destroy()
      t.ok((await quiet(url, reads)) - stalled <= 4 * 2, 'reading stops once they have disconnected')
    })

    await t.test('have their size in the access log', async (t) => {
      await app.close()
      t.match(lines, `"status":200,"bytes":${Buffer.byteLength(expected)},`)
    })
  })
}

test('resets the connection if a list fails in the middle, also for HTTP/1.0', async (t) => {
  const { store } = await openFilled(t, sqlite)
  const { read } = store.log
  let [broken, faults] = [false, 0]
  store.log.read = (...range) => {
    if (!broken) return read(...range)
    faults++
    return Promise.reject(new StoreUnavailable('unread', 'the disk is gone'))
  }
  const statuses: number[] = []
  const count = (_request: unknown, _reply: unknown, { status }: { status: number }) =>
    void statuses.push(status)
  const { url, port } = await startApp(t, '', { store, count })
  // Each version requests a page that is not cached yet.
  for (const [n, version] of ['1.1', '1.0'].entries()) {
    const page = `?limit=${3 + n}`
    const head = String(compose({ headers: { Connection: 'close' } })).replace('1.1', version)
    const socket = await startReading(port, head)
    ;[broken, faults] = [true, 0]
    let received = ''
    socket.setEncoding('latin1').on('data', (chunk) => (received += chunk))
    socket.on('end', () => t.fail('the truncated list must not end normally'))
    // Rejects with the error of the socket.
    await t.rejects(once(socket, 'close'), { code: 'ECONNRESET' })
    t.ok(faults > 0)
    t.match(received, /^HTTP\/1.1 200 /)
    t.equal(statuses.at(-1), 500, 'the access line and the metrics do not blame the client')
    assertProblem(t, await request(`${url}/plants${page}`), 503)
    broken = false
    t.equal((await request(`${url}/plants${page}`)).status, 200)
  }
})

test('resets the connection if other bytes follow the request for a list that is being sent', async (t) => {
  const { store } = await openFilled(t, sqlite)
  const { port } = await startApp(t, '', { store })
  const socket = await startReading(port, Buffer.concat([compose(), compose()]))
  socket.write('JUNK\r\n\r\n')
  let received = ''
  socket.setEncoding('latin1').on('data', (chunk) => (received += chunk))
  await t.rejects(once(socket, 'close'), { code: 'ECONNRESET' })
  t.match(received, /^HTTP\/1.1 200 /)
  t.notMatch(received, / 400 /)
})
