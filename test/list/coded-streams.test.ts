// Long lists, compressed on their way: the same bytes whatever pieces they come in, in constant memory, and nothing left
// behind when the client leaves.
import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { connect } from 'node:net'
import { Readable, Writable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import zlib from 'node:zlib'
import pino from 'pino'
import tap, { type Test, test } from 'tap'
import type { Exchange } from '../../src/http/connection/exchange.ts'
import { codecBytes, codecJobs, maxCodedLists, pageBytes, pagePlants, streamReads } from '../../src/limits.ts'
import { Codec, type Compression, compressList } from '../../src/plants/list/cache/codec.ts'
import { FairPool } from '../../src/runtime/fair-pool.ts'
import { noMeter } from '../../src/runtime/meter.ts'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { type Engine, engines, sqlite } from '../support/engines.ts'
import { request, startApp } from '../support/service.ts'
import { openStore, type Store } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { compose } from '../support/wire.ts'
import { askList, compressions, decode } from './coded.ts'
import { quiet } from './quiet.ts'

/** So many that what no client takes is far more than the buffers of a connection hold. */
const plants = 60_000
const real: object[] = JSON.parse(readFileSync(new URL('../fixtures/plants.json', import.meta.url), 'utf8'))
/** Random, so that there is much of it when it is compressed, too. */
const tags = Array.from({ length: plants }, () => randomBytes(150).toString('base64url'))
const items = tags.map((tag, n) => JSON.stringify({ name: `plant ${n}`, tag }))
/** What is taken whole is shorter. */
const limit = 6000
const expected = `[${items.slice(0, limit).join()}]`

const filled = new Map<string, Promise<Store>>()

/** A store with a long log, which goes with the file: nobody adds to it. */
async function fill(engine: Engine, count: number): Promise<Store> {
  const store = await openStore(await engine.createDatabase(tap), { logger: pino({ level: 'silent' }) })
  tap.teardown(() => store.close())
  for (let n = 0; n < count; n += 4000)
    await store.log.append(items.slice(n, Math.min(n + 4000, count)).map((item) => ({ item, id: undefined })))
  return store
}

/** Such a store, that counts what is read of it, and fails when it is told to. */
async function openFilled(engine: Engine, count: number) {
  const key = `${engine.name} ${count}`
  const store = await (filled.get(key) ?? fill(engine, count))
  filled.set(key, Promise.resolve(store))
  const before: () => Promise<void> | undefined = () => undefined
  const reads = Object.assign(new EventEmitter(), { count: 0, broken: false, before })
  const read: Store['log']['read'] = async (after, last, epoch) => {
    reads.count++
    await reads.before()
    if (!reads.broken) return store.log.read(after, last, epoch)
    reads.emit('fault')
    throw new StoreUnavailable('unread', 'the disk is gone')
  }
  return { store: { ...store, log: { ...store.log, read }, close: async () => {} }, reads }
}

async function start(t: Test, { engine = sqlite, count = plants } = {}) {
  const { store, reads } = await openFilled(engine, count)
  let bytesInFlight = () => 0
  const answered: Exchange[] = []
  const { url, port } = await startApp(t, '', {
    store,
    meter: {
      ...noMeter,
      gauge(name, _help, read) {
        if (name === 'plant_store_answer_bytes_in_flight') bytesInFlight = read
      },
    },
    report: ({ status, sentBytes, url }) => answered.push({ status, sentBytes, url } as Exchange),
  })
  return { url, port, reads, answered, bytesInFlight: () => bytesInFlight() }
}

/** Asks for the whole list in a coding, and takes no more of it than the first bytes. */
async function startReading(port: number, coding: string, version = '1.1') {
  const asked = compose({ headers: { 'Accept-Encoding': coding, Connection: 'close' } }).toString()
  return send(port, asked.replace('HTTP/1.1', `HTTP/${version}`))
}

async function send(port: number, asked: string) {
  const socket = connect(port, '127.0.0.1')
  socket.write(asked)
  await once(socket, 'readable')
  return socket
}

for (const engine of engines)
  test(`${engine.name}: a long list in each coding`, async (t) => {
    const { url, port, answered } = await start(t, { engine, count: limit + 1 })
    const target = `${url}/plants?limit=${limit}`

    await t.test('is the same list, and the same bytes each time', async (t) => {
      const etags = new Set([(await askList(target)).headers.etag])
      for (const coding of compressions) {
        const headers = { 'accept-encoding': coding }
        const head = await askList(target, headers, 'HEAD')
        const first = await askList(target, headers)
        t.match(first, { status: 200, headers: { 'content-encoding': coding, vary: 'Accept-Encoding' } })
        t.ok(decode[coding]?.(first.body).toString() === expected, `the same to the byte in ${coding}`)
        t.ok(first.body.length < expected.length * 0.85)
        const again = await askList(target, headers)
        t.ok(again.body.equals(first.body), 'however it was read')
        for (const name of ['etag', 'vary', 'content-type', 'content-encoding', 'cache-control', 'link']) {
          t.equal(again.headers[name], first.headers[name], name)
          t.equal(head.headers[name], first.headers[name], name)
        }
        t.ok(answered.some(({ sentBytes }) => sentBytes === first.body.length))
        const current = await askList(target, { ...headers, 'if-none-match': String(first.headers.etag) })
        t.equal(current.status, 304)
        etags.add(first.headers.etag)
      }
      t.equal(etags.size, 4)
    })

    await t.test('is there for the next after many have left it in the middle', async (t) => {
      for (let n = 0; n < 12; n++) {
        const socket = await startReading(port, compressions[n % 3] as string)
        socket.destroy()
      }
      const whole = await askList(target, { 'accept-encoding': 'gzip' })
      t.ok(decode.gzip?.(whole.body).toString() === expected)
    })
  })

test('a compressed list waits for slow readers, and stops when they leave', async (t) => {
  const { url, port, reads, bytesInFlight } = await start(t)
  const first = reads.count
  await askList(`${url}/plants`, { 'accept-encoding': 'zstd' })
  const before = reads.count
  const whole = before - first
  const sockets = await Promise.all(
    ['zstd', 'gzip', 'zstd', 'gzip'].map((coding) => startReading(port, coding)),
  )
  const stalled = await quiet(url, reads)
  t.ok(stalled - before < 4 * 0.75 * whole, `${stalled - before} of ${4 * whole} parts for 4 clients`)
  t.equal(bytesInFlight(), sockets.length * (2 * pageBytes + codecBytes))
  for (const socket of sockets) socket.destroy()
  t.ok((await quiet(url, reads)) - stalled <= 4 * 2, 'nothing more is read once they are gone')
  t.equal(bytesInFlight(), 0)
})

test('a compressed list is answered before its codec gives any bytes', async (t) => {
  const { port, reads } = await start(t, { count: 8000 })
  const read = Promise.withResolvers<void>()
  reads.before = () => (reads.count > 1 ? read.promise : undefined)
  const socket = await startReading(port, 'zstd')
  t.match(String(socket.read()), /^HTTP\/1\.1 200 /)
  read.resolve()
  socket.resume()
  await once(socket, 'close')
})

test('beside many lists that are being compressed, others are sent plain to those who accept that', async (t) => {
  const { url, port } = await start(t)
  const target = `${url}/plants?limit=${limit}`
  // Those of the next round are compressed, though some of this one may still be leaving.
  const asked = compose({ headers: { 'Accept-Encoding': 'gzip, identity;q=0' } }).toString()
  const codingOf = async (accepted: string) =>
    (await askList(target, { 'accept-encoding': accepted })).headers['content-encoding']
  for (let round = 0; round < 2; round++) {
    const sockets = await Promise.all(Array.from({ length: maxCodedLists }, () => send(port, asked)))
    await until(async () => (await codingOf('zstd')) === undefined)
    t.equal(await codingOf('zstd, identity;q=0'), 'zstd')
    for (const socket of sockets) socket.destroy()
    await until(async () => (await codingOf('zstd')) === 'zstd')
  }
})

test('a fault in mid-list resets the connection of a compressed list', async (t) => {
  const { port, reads } = await start(t)
  for (const version of ['1.1', '1.0']) {
    reads.broken = false
    const socket = await startReading(port, 'gzip', version)
    const fault = once(reads, 'fault')
    reads.broken = true
    let ended = false
    let error: NodeJS.ErrnoException | undefined
    socket.on('end', () => (ended = true)).on('error', (fault) => (error = fault))
    socket.resume()
    await new Promise((resolve) => socket.on('close', resolve))
    await fault
    t.equal(error?.code, 'ECONNRESET', version)
    t.notOk(ended, 'there is no end that could be taken for one')
  }
})

test('lists that broke off hold up nobody', async (t) => {
  const count = 8000
  const { url, reads } = await start(t, { count })
  for (let n = 0; n < streamReads; n++) {
    let parts = 0
    reads.before = () => {
      if (++parts > 1) throw new StoreUnavailable('unread', 'the disk is gone')
      return undefined
    }
    await t.rejects(request(`${url}/plants`), { message: 'terminated' })
  }
  reads.before = () => undefined
  t.equal(((await request(`${url}/plants`)).json() as unknown[]).length, count, 'a further one comes whole')
})

/** Plants as they are, in which codecs find much to choose from. */
const text = Buffer.from(
  JSON.stringify(
    Array.from({ length: 40_000 }, (_, n) => ({ ...real[n % real.length], name: `plant ${n}` })),
  ),
).subarray(0, 1.25 * 2 ** 20)

/** What a codec makes of a text in pieces of so many bytes. */
async function compress(coding: Compression, list: { pieces: Buffer[]; plants: number }): Promise<Buffer> {
  const codec = new Codec(coding, list.plants)
  const made: Buffer[] = []
  for (const piece of list.pieces) made.push(await codec.add(piece))
  made.push(await codec.finish())
  codec.close()
  return Buffer.concat(made)
}

function* cut(sizes: number[]): Generator<Buffer> {
  for (let [start, n] = [0, 0]; start < text.length; n++) {
    const end = start + (sizes[n % sizes.length] as number)
    yield text.subarray(start, end)
    start = end
  }
}

const cuts = [[262_144], [131_072], [196_608, 100_000], [70_001, 3, 261_000], [12_345], [65_536, 1]]

for (const coding of compressions as Compression[])
  for (const plants of [pagePlants, pagePlants + 1])
    test(`${plants} plants are the same bytes in ${coding}, whatever parts they were read in`, async (t) => {
      const whole = await compress(coding, { pieces: [text], plants })
      t.ok(decode[coding]?.(whole).equals(text))
      for (const sizes of cuts) {
        const made = await compress(coding, { pieces: [...cut(sizes)], plants })
        t.ok(made.equals(whole), `${sizes}`)
      }
    })

test('the first part of a list is on its way before the second is read', async (t) => {
  for (const coding of compressions as Compression[]) {
    const codec = new Codec(coding, plants)
    t.ok((await codec.add(text.subarray(0, 192 * 1024))).length > 0, coding)
    codec.close()
  }
})

test('a compressed list is taken as its reader takes it, and frees its codec', async (t) => {
  let given = 0
  const pieces = [...cut([65_536])]
  const list = new Readable({
    highWaterMark: 0,
    read() {
      this.push(pieces[given++] ?? null)
    },
  })
  const codec = new Codec('gzip', plants)
  const jobs = new FairPool({ slots: codecJobs })
  const stream = compressList(list, { codec, jobs, owner: 'a' })
  const reader = new Writable({
    highWaterMark: 1,
    write(_chunk, _encoding, _done) {
      this.emit('given')
    },
  })
  const first = once(reader, 'given')
  stream.pipe(reader)
  await first
  for (let turn = 0; turn < 50; turn++) await jobs.run('b', async () => {})
  t.ok(given < 6, `${given} of ${pieces.length} pieces were taken`)
  stream.destroy()
  await once(stream, 'close')
  t.equal(list.destroyed, true)
  await t.rejects(codec.add(text), { code: 'ERR_STREAM_DESTROYED' })
})

test('no step of a codec leaves a listener behind', async (t) => {
  const warnings: Error[] = []
  const note = (warning: Error) => warnings.push(warning)
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  for (const coding of compressions as Compression[])
    await compress(coding, { pieces: [...cut([65_536])], plants })
  await setImmediate()
  t.strictSame(warnings, [])
})

test('a codec that fails in the middle of a step keeps nobody waiting', async (t) => {
  const described = Object.getOwnPropertyDescriptor(zlib, 'createGzip')
  const make = (value: () => unknown) => {
    Object.defineProperty(zlib, 'createGzip', { ...described, value })
    syncBuiltinESMExports()
  }
  t.teardown(() => make(described?.value))
  // No text has a compressor fail, but almost every one has its opposite do so.
  make(() => zlib.createGunzip())
  const { Codec: Failing } = await import(
    `${import.meta.resolve('../../src/plants/list/cache/codec.ts')}?failing`
  )
  const codec = new Failing('gzip', plants)
  await t.rejects(codec.add(text), { code: 'Z_DATA_ERROR' })
  await t.rejects(codec.finish(), { code: 'ERR_STREAM_DESTROYED' })
})

test('a list may end without any bytes, or without any more bytes', async (t) => {
  const jobs = new FairPool({ slots: codecJobs })
  const stream = compressList(Readable.from([Buffer.from('[1,'), Buffer.from('2]')]), {
    codec: new Codec('br', plants),
    jobs,
    owner: 'a',
  })
  t.equal(decode.br?.(Buffer.concat(await stream.toArray())).toString(), '[1,2]')
})

test('a compressed list that nobody reads closes its source', async (t) => {
  const list = new Readable({ read() {} })
  const jobs = new FairPool({ slots: codecJobs })
  const stream = compressList(list, { codec: new Codec('br', plants), jobs, owner: 'a' })
  stream.destroy()
  await once(stream, 'close')
  t.ok(list.destroyed)
})
