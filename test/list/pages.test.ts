// Pages: bounded by bytes as well as by count, read once for all who ask, cached only when they are whole.
import { once } from 'node:events'
import { Readable, Writable } from 'node:stream'
import { test } from 'tap'
import { pageBytes, pagePlants, streamReads } from '../../src/limits.ts'
import { rangeOf } from '../../src/plants/list/range.ts'
import type { PlantLog } from '../../src/store/engine.ts'
import { Epochs } from '../../src/store/epochs.ts'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { MemoryLog } from '../support/memory-log.ts'
import { makePages, readPlain } from './pages.ts'

/** 2,060 bytes: no plant is larger. */
const largest = `{"name":"${'🌿'.repeat(255)}","tag":"${'🌿'.repeat(255)}"}`
const small = '{"name":"Alder","tag":"Alnus"}'

/** A log that notes how large each read of it was, in bytes. */
function makeLog(items: string[]) {
  const log = new MemoryLog(items.map((item) => ({ item, id: undefined })))
  const reads: number[] = []
  const read = log.read.bind(log)
  log.read = async (after, last, epoch) => {
    const array = await read(after, last, epoch)
    reads.push(array.length)
    return array
  }
  return { log, reads, pages: makePages(log).pages }
}

async function readAll(list: Buffer | Readable): Promise<string> {
  if (Buffer.isBuffer(list)) return list.toString()
  let text = ''
  for await (const part of list) text += part
  return text
}

const unread = new StoreUnavailable('unread', 'the log was cut')

async function page(log: MemoryLog, after: number, last: number) {
  return rangeOf(after, last, (await log.head()).epochs)
}

test('a list of small plants that fits is one buffer, and is read once', async (t) => {
  const items = Array.from({ length: pagePlants }, () => small)
  const { log, reads, pages } = makeLog(items)
  const whole = await page(log, 0, pagePlants)
  const first = await readPlain(pages, whole)
  t.ok(Buffer.isBuffer(first))
  t.ok(first.toString() === `[${items.join()}]`, 'the same to the byte')
  const before = reads.length
  t.ok(pages.findCached(whole, ['identity'], 'anyone')?.list === first, 'at once from now on')
  t.equal(reads.length, before)
  t.ok((await readPlain(pages, await page(log, 1, pagePlants))) instanceof Buffer)
  t.equal(reads.length, before + 1, 'it is known by now that so many fit')
})

const mixtures: [what: string, items: string[]][] = [
  ['the largest plants', Array.from({ length: 1000 }, () => largest)],
  ['plants that suddenly are large', [...Array(6000).fill(small), ...Array(1000).fill(largest)]],
  ['large and small plants', Array.from({ length: 9000 }, (_, n) => (n % 700 < 350 ? small : largest))],
]
for (const [what, items] of mixtures)
  test(`no part of a list of ${what} is larger than ${pageBytes} bytes`, async (t) => {
    const { log, pages } = makeLog(items)
    const list = await readPlain(pages, await page(log, 0, items.length))
    t.ok(list instanceof Readable)
    const parts: string[] = []
    for await (const part of list as Readable) parts.push(part)
    t.ok(parts.join('') === `[${items.join()}]`, 'whole, in order')
    const sizes = parts.map((part) => Buffer.byteLength(part))
    t.ok(Math.max(...sizes) <= pageBytes + 2, `${Math.max(...sizes)}`)
    t.ok(parts.length < items.length / 100, `${parts.length} parts`)
  })

test('a large limit does not read more than fits into one answer', async (t) => {
  const items = Array.from({ length: 600 }, () => largest)
  const { log, pages, reads } = makeLog(items)
  const list = await readPlain(pages, await page(log, 0, 500))
  t.ok(list instanceof Readable)
  t.ok(Math.max(...reads) <= pageBytes)
  t.ok((await readAll(list)) === `[${items.slice(0, 500).join()}]`)
})

test('a stream is one part ahead of its reader, and no more', async (t) => {
  const { log, pages, reads } = makeLog(Array.from({ length: 2000 }, () => largest))
  const list = (await readPlain(pages, await page(log, 0, 2000))) as Readable
  let take = () => {}
  const reader = new Writable({
    decodeStrings: false,
    highWaterMark: 1,
    write(_chunk, _encoding, done) {
      take = done
      this.emit('given')
    },
  })
  const given = once(reader, 'given')
  list.pipe(reader)
  await given
  for (let taken = 1; taken < 8; taken++) {
    await turns(20)
    t.equal(reads.length, taken + 1, `with ${taken} given`)
    const next = once(reader, 'given')
    take()
    await next
  }
  await turns(20)
  list.destroy()
  await turns(20)
  t.equal(reads.length, 9, 'nothing is read any more once it is destroyed')
})

test('lists whose clients left at once are read no further, and keep nobody waiting', async (t) => {
  const { log, pages, reads } = makeLog(Array.from({ length: 2000 }, () => largest))
  const ranges = await Promise.all(Array.from({ length: 20 }, (_, after) => page(log, after, 2000)))
  const lists = await Promise.all(ranges.map((range) => readPlain(pages, range) as Promise<Readable>))
  for (const list of lists) list.resume()
  const before = reads.length
  await Promise.all(lists.map((list) => once(list, 'data')))
  for (const list of lists) list.destroy()
  await turns(50)
  t.ok(reads.length <= before + streamReads, `${reads.length - before} more`)
})

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate)
}

test('requests for one page at one moment share one read', async (t) => {
  const { log, pages, reads } = makeLog(Array.from({ length: 100 }, () => small))
  const all = await page(log, 0, 100)
  const read = await Promise.all(Array.from({ length: 50 }, () => readPlain(pages, all)))
  t.equal(reads.length, 1)
  t.equal(new Set(read).size, 1)
})

test('a read that failed is not cached', async (t) => {
  const { log, pages } = makeLog(Array.from({ length: 10 }, () => small))
  const stale = await page(log, 0, 10)
  const cutAt = (position: number, count: number) => {
    log.cut(position)
    for (let n = 0; n < count; n++) log.entries.push({ item: `"new ${n}"`, id: undefined })
  }
  cutAt(4, 6)
  await t.rejects(readPlain(pages, stale), unread)
  await t.rejects(readPlain(pages, stale), unread, 'nor is it cached')
  const fresh = await page(log, 0, 10)
  t.not(fresh.name, stale.name)
  t.match((await readPlain(pages, fresh)).toString(), 'new 5')
})

test('the cache holds 32 MiB', async (t) => {
  const each = 125
  const { log, pages, reads } = makeLog(Array.from({ length: 200 * each }, () => largest))
  const all = await Promise.all(Array.from({ length: 200 }, (_, n) => page(log, n * each, (n + 1) * each)))
  for (const one of all) await readPlain(pages, one)
  const before = reads.length
  const kept = all.filter((one) => pages.findCached(one, ['identity'], 'anyone') !== undefined).length
  const bytes = kept * each * Buffer.byteLength(largest)
  t.ok(bytes <= 32 * 2 ** 20 && bytes > 30 * 2 ** 20, `${bytes}`)
  for (const one of all) await readPlain(pages, one)
  t.ok(reads.length - before >= 200 - kept, 'the others are read again')
})

test('a log that ends in the middle of a list is an error of the stream', async (t) => {
  const { log, pages } = makeLog(Array.from({ length: 2000 }, () => largest))
  const list = (await readPlain(pages, await page(log, 0, 2000))) as Readable
  log.cut(300)
  for (let n = 0; n < 1700; n++) log.entries.push({ item: largest, id: undefined })
  await t.rejects(readAll(list), unread)
})

test('pages of a slow store are read in turn for the clients that wait', async (t) => {
  const order: string[] = []
  const answers: (() => void)[] = []
  const log = {
    read: (after: number) => {
      order.push(String(after))
      return new Promise<Buffer>((resolve) => answers.push(() => resolve(Buffer.from('[1]'))))
    },
  } as unknown as PlantLog
  const { pages } = makePages(log)
  const epochs = new Epochs([{ epoch: 'e', start: 0 }])
  const read = (after: number, owner: string) => readPlain(pages, rangeOf(after, after + 1, epochs), owner)
  const first = read(0, 'busy')
  answers.shift()?.()
  await first
  const reads = [1, 2, 3, 4, 5, 6].map((after) => read(after, 'busy'))
  reads.push(read(7, 'modest'))
  while (answers.length > 0) {
    answers.shift()?.()
    await new Promise(setImmediate)
  }
  await Promise.all(reads)
  t.same(order, ['0', '1', '2', '3', '4', '7', '5', '6'])
})

test('a page for which there is no room is not read', async (t) => {
  const log = {
    read() {
      throw new Error('it was read')
    },
  } as unknown as PlantLog
  const { pages } = makePages(log)
  const full = new Error('there is no room')
  const hold = () => {
    throw full
  }
  await t.rejects(pages.read(rangeOf(0, 1, new Epochs([])), ['identity'], { owner: 'a', hold }), full)
})
