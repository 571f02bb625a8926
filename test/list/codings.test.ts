// Pages in the content codings that clients accept (RFC 9110, section 12.5.3): the same plants in fewer bytes, and each
// coding with an entity tag of its own.
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import pino from 'pino'
import { type Test, test } from 'tap'
import { type Coding, makeNegotiator } from '../../src/http/codings.ts'
import { codecJobs, maxWaitingPages, pagePlants } from '../../src/limits.ts'
import type { Pages } from '../../src/plants/list/cache/pages.ts'
import { type LogRange, rangeOf } from '../../src/plants/list/range.ts'
import { FairPool } from '../../src/runtime/fair-pool.ts'
import { type Meter, noMeter } from '../../src/runtime/meter.ts'
import type { PlantLog } from '../../src/store/engine.ts'
import { Epochs } from '../../src/store/epochs.ts'
import { type Engine, engines, sqlite } from '../support/engines.ts'
import { request, startApp } from '../support/service.ts'
import { openStore } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { compose } from '../support/wire.ts'
import { askList, compressions, decode, type Reply } from './coded.ts'
import { makePages, readPlain } from './pages.ts'

const plants = Array.from({ length: 60 }, (_, n) => ({ name: `plant ${n}`, tag: `tag ${n % 7}` }))

async function start(t: Test, engine: Engine = sqlite, env: NodeJS.ProcessEnv = {}) {
  const { url, store } = await startApp(t, await engine.createDatabase(t), { env })
  await store.log.append(plants.map((plant) => ({ item: JSON.stringify(plant), id: undefined })))
  return `${url}/plants`
}

/** Asks until the answer comes in the coding. */
async function askCoded(coding: string, url: string): Promise<Reply> {
  let answer: Reply | undefined
  await until(async () => {
    answer = await askList(url, { 'accept-encoding': coding })
    return answer.headers['content-encoding'] === coding
  })
  return answer as Reply
}

/** What a list says of itself, but for the coding. */
const said = ({ headers }: Reply) => [headers.vary, headers['cache-control'], headers.link]

for (const engine of engines)
  test(`${engine.name}: a page comes in each coding as soon as it is compressed`, async (t) => {
    const url = `${await start(t, engine)}?limit=50`
    const plain = await askList(url)
    t.match(plain, { status: 200, headers: { 'content-encoding': undefined, vary: 'Accept-Encoding' } })
    const etags = new Set([plain.headers.etag])
    for (const coding of compressions) {
      const first = await askList(url, { 'accept-encoding': coding })
      t.equal(first.headers['content-encoding'], undefined, `nobody waits for ${coding}`)
      t.equal(first.headers.etag, plain.headers.etag)
      t.ok(first.body.equals(plain.body))
      const coded = await askCoded(coding, url)
      t.ok(decode[coding]?.(coded.body).equals(plain.body), `the same to the byte in ${coding}`)
      t.ok(coded.body.length < plain.body.length / 3, `${coded.body.length} of ${plain.body.length} bytes`)
      t.equal(coded.headers['content-length'], String(coded.body.length))
      t.same(said(coded), said(plain))
      etags.add(coded.headers.etag)
      const again = await askList(url, { 'accept-encoding': coding })
      t.equal(again.headers.etag, coded.headers.etag)
      t.ok(again.body.equals(coded.body), 'what a strong tag names is always the same')
    }
    t.equal(etags.size, 4)
    for (const etag of etags) t.match(etag, /^"[\x21\x23-\x7e]+"$/, 'a strong one')
  })

const choices: [accepted: string | string[], coding: string | undefined][] = [
  ['', undefined],
  ['zstd, br, gzip', 'zstd'],
  ['gzip, deflate, br', 'br'],
  ['gzip, deflate, br, zstd', 'zstd'],
  ['gzip, deflate', 'gzip'],
  ['x-gzip', 'gzip'],
  ['GZIP;Q=0.5', 'gzip'],
  ['zstd;q=0.1, gzip;q=0.2', 'gzip'],
  ['br;q=0.5, zstd;q=0.5', 'zstd'],
  ['*', undefined],
  ['*;q=0.5, zstd;q=0', undefined],
  ['*, gzip;q=0.1', 'gzip'],
  ['*, br;q=0.2, zstd;q=0.1', 'br'],
  ['*, identity;q=0.1', undefined],
  ['*, identity;q=0', 'gzip'],
  ['*, identity;q=0, gzip;q=0', 'br'],
  ['deflate, compress', undefined],
  ['gzip;q=0', undefined],
  ['identity, gzip;q=0.5', undefined],
  ['identity;q=0.5, gzip;q=0.5', 'gzip'],
  ['identity;q=0', 'gzip'],
  ['identity;q=0, zstd;q=0', 'gzip'],
  ['identity;q=0, gzip;q=0', 'br'],
  ['identity;q=0, zstd', 'zstd'],
  ['*;q=0, gzip', 'gzip'],
  ['*;q=0', undefined],
  [['br;q=0', 'zstd;q=0.5', 'gzip'], 'gzip'],
  ['gzip;q=1.1', undefined],
  ['gz ip', undefined],
  [`${'a,'.repeat(4000)}gzip`, 'gzip'],
]

test('the coding is the one that the client prefers, and zstd before br before gzip', async (t) => {
  const url = await start(t)
  for (const coding of compressions) await askCoded(coding, url)
  for (const [accepted, coding] of choices) {
    const { status, headers } = await askList(url, { 'accept-encoding': accepted })
    t.equal(status, 200)
    t.equal(headers['content-encoding'], coding, `${accepted}`.slice(0, 60))
  }
})

test('a client that refuses plain bytes gets compressed ones, however few they are', async (t) => {
  const refusals = ['identity;q=0, ', '*;q=0, ']
  for (const [refusal, query] of refusals.flatMap((one) =>
    ['', '?limit=50', '?limit=1', '?limit=0'].map((query) => [one, query] as const),
  )) {
    // Of another refusal the pages would be there already.
    const url = await start(t)
    for (const coding of compressions) {
      const { body } = await askList(url + query)
      const headers = { 'accept-encoding': refusal + coding }
      const head = await askList(url + query, headers, 'HEAD')
      const all = await Promise.all([1, 2, 3].map(() => askList(url + query, headers)))
      for (const answer of all) {
        t.match(answer, { status: 200, headers: { 'content-encoding': coding } }, `${coding} ${query}`)
        t.ok(decode[coding]?.(answer.body).equals(body))
        t.equal(answer.headers.etag, head.headers.etag)
        t.equal(head.headers['content-encoding'], coding)
      }
    }
  }
})

test('a page that waits for its compression counts as in flight', async (t) => {
  let bytesInFlight = () => 0
  const gauge = (name: string, _help: string, read: () => number) => {
    if (name === 'plant_store_answer_bytes_in_flight') bytesInFlight = read
  }
  const { url, store } = await startApp(t, await sqlite.createDatabase(t), { meter: { ...noMeter, gauge } })
  await store.log.append(plants.map((plant) => ({ item: JSON.stringify(plant), id: undefined })))
  const { body } = await askList(`${url}/plants`)
  const seen = new Set<number>()
  let over = false
  const asked = askList(`${url}/plants`, { 'accept-encoding': 'gzip, identity;q=0' })
  void asked.finally(() => (over = true))
  for (; !over; await new Promise(setImmediate)) seen.add(bytesInFlight())
  t.equal((await asked).status, 200)
  t.ok(seen.has(body.length), `${[...seen]} of ${body.length}`)
})

test('a page that fits into one packet is compressed only when it must be', async (t) => {
  const url = `${await start(t)}?limit=10`
  for (let turn = 0; turn < 20; turn++)
    t.match(await askList(url, { 'accept-encoding': 'gzip' }), { headers: { 'content-encoding': undefined } })
})

test('HEAD says what GET would say', async (t) => {
  const url = await start(t)
  const headers = { 'accept-encoding': 'br' }
  const same = ['etag', 'vary', 'content-type', 'content-encoding', 'cache-control']
  const compare = async () => {
    const head = await askList(url, headers, 'HEAD')
    const get = await askList(url, headers)
    for (const name of same) t.equal(head.headers[name], get.headers[name], name)
    return head.headers['content-encoding']
  }
  t.equal(await compare(), undefined, 'it does not have the page compressed')
  await askCoded('br', url)
  t.equal(await compare(), 'br')
})

test('HEAD says what GET would say of the longest page, and of a list that is one longer', async (t) => {
  const { url, store } = await startApp(t, await sqlite.createDatabase(t))
  const items = Array.from({ length: pagePlants + 1 }, (_, n) => JSON.stringify({ name: `${n}`, tag: '' }))
  await store.log.append(items.map((item) => ({ item, id: undefined })))
  for (const [limit, coding] of [
    [pagePlants, undefined],
    [pagePlants + 1, 'br'],
  ] as const)
    for (const method of ['HEAD', 'GET']) {
      const { headers } = await askList(`${url}/plants?limit=${limit}`, { 'accept-encoding': 'br' }, method)
      t.equal(headers['content-encoding'], coding, `${method} ${limit}`)
    }
})

test('however many pages were compressed before, the next one is, too', async (t) => {
  const url = await start(t)
  for (let limit = 60; limit > 40; limit--) t.ok(await askCoded('gzip', `${url}?limit=${limit}`))
})

test('a client that has the page in any coding that it accepts is told so', async (t) => {
  const url = await start(t)
  const etags: Record<string, string> = { identity: String((await askList(url)).headers.etag) }
  for (const coding of compressions) etags[coding] = String((await askCoded(coding, url)).headers.etag)
  const { identity, br, gzip } = etags
  const conditions: [accepted: string, condition: string, current: string | undefined][] = [
    ['gzip', `${gzip}`, gzip],
    ['gzip', `W/${gzip}`, gzip],
    ['gzip', `${identity}`, identity],
    ['zstd, br, gzip', `${gzip}`, gzip],
    ['zstd, br, gzip', `"x", ${gzip}, ${identity}, ${br}`, br],
    ['gzip;q=0.5, br;q=0.1', `${br}, ${gzip}`, gzip],
    ['gzip', '*', gzip],
    ['', '*', identity],
    ['', `${gzip}`, undefined],
    ['br', `${gzip}`, undefined],
    ['gzip;q=0', `${gzip}`, undefined],
    ['gzip, identity;q=0', `${identity}`, undefined],
    ['gzip', `${gzip}, `.repeat(2), gzip],
    ['gzip', `${gzip} ${gzip}`, undefined],
    ['zstd', `"x", ${gzip}`, undefined],
  ]
  for (const [accepted, condition, current] of conditions)
    for (const method of ['GET', 'HEAD']) {
      const title = `${method} ${accepted}: ${condition}`
      const headers = { 'accept-encoding': accepted }
      const answer = await askList(url, { ...headers, 'if-none-match': condition }, method)
      t.equal(answer.status, current === undefined ? 200 : 304, title)
      t.equal(answer.headers.vary, 'Accept-Encoding')
      if (current === undefined) continue
      t.equal(answer.headers.etag, current, title)
      t.equal(answer.headers['cache-control'], 'private, no-cache')
      t.same([answer.headers['content-encoding'], answer.body.length], [undefined, 0])
    }
  for (const [accepted, condition, current] of conditions) {
    const isStrong = current !== undefined && !condition.startsWith('W/')
    const headers = { 'accept-encoding': accepted, 'if-match': condition }
    t.equal((await askList(url, headers)).status, isStrong ? 200 : 412, `If-Match ${accepted}: ${condition}`)
  }
  await request(url, { body: { name: 'new', tag: '' } })
  const later = await askList(url, { 'accept-encoding': 'gzip', 'if-none-match': `${gzip}, ${identity}` })
  t.equal(later.status, 200, 'it is another list now')
})

test('a page of another origin is told that the list varies by both; a problem is never compressed', async (t) => {
  const url = await start(t, sqlite, { CORS_ORIGIN: 'https://a.test,https://b.test' })
  const headers = { origin: 'https://a.test', 'accept-encoding': 'gzip, identity;q=0' }
  const answers = [
    await askList(url, headers),
    await askList(url, headers, 'HEAD'),
    await askList(url, { ...headers, 'if-none-match': '*' }),
  ]
  for (const answer of answers) t.equal(answer.headers.vary, 'Origin, Accept-Encoding')
  const problem = await askList(`${url}?limit=x`, headers)
  t.match(problem, { status: 400, headers: { 'content-encoding': undefined, vary: 'Origin' } })
})

test('a few texts of Accept-Encoding are kept, and no long ones', async (t) => {
  const negotiate = makeNegotiator(['zstd', 'gzip', 'identity'])
  const kept = negotiate('gzip, zstd;q=0')
  t.same(kept, ['gzip', 'identity'])
  t.equal(negotiate('gzip, zstd;q=0'), kept)
  const long = `gzip${' '.repeat(8000)}`
  t.same(negotiate(long), kept)
  t.not(negotiate(long), negotiate(long))
  for (let n = 0; n < 1000; n++) negotiate(`gzip, x${n}`)
  t.not(negotiate('gzip, zstd;q=0'), kept)
})

const epochs = new Epochs([{ epoch: 'e', start: 0 }])

/** Asks for a page as a client does that accepts this coding alone. */
async function readCoded(pages: Pages, range: LogRange, coding: Coding, owner = 'a'): Promise<Buffer> {
  return (await pages.read(range, [coding], { owner, hold() {} })).list as Buffer
}

function findCoded(pages: Pages, range: LogRange, coding: Coding): Buffer | undefined {
  return pages.findCached(range, [coding], 'a')?.list as Buffer | undefined
}

/** So many pages, which are cached plain. */
async function readPages(count: number, read = () => Buffer.from(JSON.stringify(plants)), meter = noMeter) {
  const { pages, jobs } = makePages({ read } as unknown as PlantLog, meter)
  const ranges = Array.from({ length: count }, (_, n) => rangeOf(n, n + 60, epochs))
  for (const range of ranges) await readPlain(pages, range)
  return { pages, jobs, ranges }
}

/** Resolves once all jobs of an owner are done that came before: jobs that wait for each other take every place. */
async function settle(jobs: FairPool, owner: string): Promise<void> {
  const all = Promise.withResolvers<void>()
  let left = codecJobs
  const job = () => {
    if (--left === 0) all.resolve()
    return all.promise
  }
  await Promise.all(Array.from({ length: codecJobs }, () => jobs.run(owner, job)))
}

test('of a flood of pages a few are compressed, and each of these once', async (t) => {
  const { pages, jobs, ranges } = await readPages(200)
  for (const range of [...ranges, ...ranges])
    t.equal(pages.findCached(range, ['gzip', 'identity'], 'a')?.coding, 'identity')
  await settle(jobs, 'a')
  const made = ranges.filter((range) => findCoded(pages, range, 'gzip') !== undefined)
  t.same(made, ranges.slice(0, 16))
  const last = ranges.at(-1) as LogRange
  const both = await Promise.all(['a', 'b'].map((owner) => readCoded(pages, last, 'br', owner)))
  t.equal(both[0], both[1])
})

test('a few pages of a token wait to be compressed, and further ones are refused', async (t) => {
  const most = codecJobs + maxWaitingPages
  const { pages, ranges } = await readPages(most + 2)
  const make = (n: number, owner: string) => readCoded(pages, ranges[n] as LogRange, 'gzip', owner)
  const waiting = Array.from({ length: most }, (_, n) => make(n, 'a'))
  await t.rejects(make(most, 'a'), { code: 'overloaded' })
  t.ok((await make(most, 'b')).length > 0, 'another token has a line of its own')
  await Promise.all(waiting)
  t.ok((await make(most + 1, 'a')).length > 0)
})

test('a page for which the queue has no room is sent plain, and compressed another time', async (t) => {
  const { pages, jobs, ranges } = await readPages(1)
  const [range] = ranges as [LogRange]
  const { promise, resolve } = Promise.withResolvers<void>()
  const waiting = Array.from({ length: codecJobs + maxWaitingPages }, () => jobs.run('a', () => promise))
  const ask = () => pages.findCached(range, ['gzip', 'identity'], 'a')?.coding
  t.equal(ask(), 'identity')
  resolve()
  await Promise.all(waiting)
  t.equal(findCoded(pages, range, 'gzip'), undefined)
  t.equal(ask(), 'identity')
  await settle(jobs, 'a')
  t.equal(ask(), 'gzip')
})

test('a page that cannot be compressed is sent plain, and the log says why', async (t) => {
  const lines: string[] = []
  const { url, store } = await startApp(t, await sqlite.createDatabase(t), {
    logger: pino({ level: 'warn' }, { write: (line) => lines.push(line) }),
  })
  await store.log.append(plants.map((plant) => ({ item: JSON.stringify(plant), id: undefined })))
  const { allocUnsafeSlow } = Buffer
  t.teardown(() => Object.assign(Buffer, { allocUnsafeSlow }))
  Object.assign(Buffer, {
    allocUnsafeSlow() {
      throw new RangeError('there is no memory')
    },
  })
  const headers = { 'accept-encoding': 'gzip, identity' }
  t.match(await askList(`${url}/plants`, headers), {
    status: 200,
    headers: { 'content-encoding': undefined },
  })
  await until(() => lines.length > 0)
  t.match(JSON.parse(String(lines[0])), {
    msg: 'a page was not compressed',
    err: { message: 'there is no memory' },
  })
  Object.assign(Buffer, { allocUnsafeSlow })
  await askCoded('gzip', `${url}/plants`)
})

test('a client that left while its page was read holds no bytes', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t), { logger: pino({ level: 'silent' }) })
  t.teardown(() => store.close())
  await store.log.append(plants.map((plant) => ({ item: JSON.stringify(plant), id: undefined })))
  const [begun, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const read: PlantLog['read'] = async (after, last, epoch) => {
    begun.resolve()
    await gone.promise
    return store.log.read(after, last, epoch)
  }
  let bytesInFlight = () => Number.NaN
  const { url, port } = await startApp(t, '', {
    store: { ...store, log: { ...store.log, read }, close: async () => {} },
    meter: {
      ...noMeter,
      gauge(name, _help, value) {
        if (name === 'plant_store_answer_bytes_in_flight') bytesInFlight = value
      },
    },
    report: () => gone.resolve(),
  })
  const socket = connect(port, '127.0.0.1')
  socket.write(compose({ headers: { 'Accept-Encoding': 'gzip, identity;q=0' } }))
  await begun.promise
  t.ok(bytesInFlight() > 0)
  socket.destroy()
  await gone.promise
  t.equal((await askList(`${url}/plants`, { 'accept-encoding': 'gzip, identity;q=0' })).status, 200)
  await until(() => bytesInFlight() === 0)
  t.equal(bytesInFlight(), 0)
})

test('the thread pool has a few jobs at a time, for one owner after the other', async (t) => {
  const jobs = new FairPool({ slots: codecJobs })
  const order: string[] = []
  let atWork = 0
  const job = (name: string) => async () => {
    order.push(name)
    atWork++
    if (atWork > codecJobs) t.fail('there are too many')
    await new Promise(setImmediate)
    atWork--
    if (name === 'failing') throw new Error('it failed')
  }
  const ran = ['a', 'a', 'a', 'a', 'failing', 'b'].map((owner) => jobs.run(owner, job(owner)))
  const ends = await Promise.allSettled(ran)
  t.equal(ends.filter(({ status }) => status === 'rejected').length, 1)
  t.same(order, ['a', 'a', 'a', 'failing', 'b', 'a'])
})

test('compressed pages have their part in the bytes of the cache', async (t) => {
  let shown = () => 0
  const meter: Meter = { ...noMeter, gauge: (_name, _help, read) => (shown = read) }
  const bytes = randomBytes(240 * 1024)
  const { pages, ranges } = await readPages(100, () => Buffer.from(bytes), meter)
  for (const range of ranges) await readCoded(pages, range, 'zstd')
  t.ok(shown() > 30 * 2 ** 20 && shown() <= 32 * 2 ** 20, `${shown()} bytes`)
  const kept = ranges.filter((range) => findCoded(pages, range, 'zstd') !== undefined)
  t.same(kept, ranges.slice(-kept.length))
  t.ok(kept.length > 60 && kept.length < ranges.length, `${kept.length} pages`)
})
