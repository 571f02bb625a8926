// The cache of pages: each is read once, by its name, and a list is read in parts that are bounded in bytes. The text of
// plants is a format: logs, ETags and retries hold it, so it may change only with its number.
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { type Test, test } from 'tap'
import { Plant } from '../../schemas/plant.ts'
import { itemFormat, longestItemBytes, serializeItem } from '../../src/plants/item.ts'
import { rangeOf } from '../../src/plants/names.ts'
import { Pages } from '../../src/plants/pages.ts'
import { sqlite } from '../support/engines.ts'
import { MemoryLog } from '../support/memory-log.ts'
import { request, startApp } from '../support/service.ts'
import { openStore } from '../support/stores.ts'

async function start(t: Test, items: string[]) {
  const store = await openStore(await sqlite.createDatabase(t))
  await store.log.append(items.map((item) => ({ item, id: undefined })))
  const sizes: number[] = []
  const read: typeof store.log.read = async (...range) => {
    const array = await store.log.read(...range)
    sizes.push(Buffer.byteLength(array))
    return array
  }
  const { url } = await startApp(t, '', { store: { ...store, log: { ...store.log, read } } })
  return { url, sizes }
}

test('a page is read once, also when many ask for it at the same moment', async (t) => {
  const { url, sizes } = await start(
    t,
    Array.from({ length: 300 }, (_, n) => serializeItem({ name: `${n}`, tag: '' })),
  )
  const many = await Promise.all(Array.from({ length: 30 }, () => request(`${url}/plants?limit=100`)))
  t.equal(new Set(many.map(({ text }) => text)).size, 1)
  await request(`${url}/plants?limit=100`)
  t.equal(sizes.length, 1)
  await request(`${url}/plants`, { body: { name: 'another', tag: '' } })
  await request(`${url}/plants?limit=100`)
  t.equal(sizes.length, 1, 'the first plants are the same as before')
  await request(`${url}/plants`)
  t.equal(sizes.length, 2)
})

const largest = serializeItem({ name: '🌿'.repeat(255), tag: '🌿'.repeat(255) })

test('a list of the largest plants is read in parts of at most 256 KiB, but for the first', async (t) => {
  t.equal(Buffer.byteLength(largest), longestItemBytes(Plant), 'the bound is that of the schema')
  const items = Array.from({ length: 3000 }, () => largest)
  const { url, sizes } = await start(t, items)
  t.equal((await request(`${url}/plants`)).text, `[${items}]`)
  // The first parts are larger, until it is known how large these plants are.
  t.ok(
    sizes.slice(-10).every((size) => size <= 2 * 256 * 1024),
    String(sizes.slice(-10)),
  )
  t.ok(sizes.length > 10)
})

test('a long list that its client leaves makes room for another', async (t) => {
  const log = new MemoryLog(Array.from({ length: 300 }, () => ({ item: largest, id: undefined })))
  const pages = new Pages(log)
  const range = rangeOf(0, 300, await log.head())
  const leave = async (coding: 'identity' | 'gzip') =>
    once(((await pages.get(range, [coding])).bytes as Readable).destroy(), 'close')
  for (let n = 0; n <= 100; n++) await t.resolves(leave(n % 2 ? 'gzip' : 'identity'))
})

/** A change here needs another `itemFormat`, and an answer to what becomes of the plants that are stored. */
const golden: [name: string, tag: string, text: string][] = [
  ['Alder', 'Alnus', '{"name":"Alder","tag":"Alnus"}'],
  ['a', '', '{"name":"a","tag":""}'],
  ['"', '\\', '{"name":"\\"","tag":"\\\\"}'],
  ["/ & <b> ' ", '\u2028\u2029', '{"name":"/ & <b> \' ","tag":"\u2028\u2029"}'],
  ['山椒', 'é e\u0301', '{"name":"山椒","tag":"é e\u0301"}'],
  ['🌿', '\ufeff\uffff\u00a0', '{"name":"🌿","tag":"\ufeff\uffff\u00a0"}'],
  ['"'.repeat(255), '🌿'.repeat(255), `{"name":"${'\\"'.repeat(255)}","tag":"${'🌿'.repeat(255)}"}`],
]

test('the text of a plant is the same to the byte, as its format number says', async (t) => {
  t.equal(itemFormat, 1)
  for (const [name, tag, text] of golden) {
    t.equal(serializeItem({ name, tag }), text)
    t.equal(serializeItem({ tag, name, id: 7 } as { name: string; tag: string }), text)
  }
})

test('lists and answers show that text, and their ETags name its format', async (t) => {
  const { url } = await startApp(t)
  for (const [name, tag, text] of golden)
    t.equal((await request(`${url}/plants`, { body: { tag, name } })).text, text)
  const list = await request(`${url}/plants`)
  t.equal(list.text, `[${golden.map(([, , text]) => text).join()}]`)
  t.match(list.headers.get('etag'), new RegExp(`^W/"${itemFormat}\\.0-${golden.length}\\.`))
})
