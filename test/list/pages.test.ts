// Lists are read in parts of bounded size. The stored text of plants is a format: logs, ETags and retries contain it,
// so a change requires a new format number.
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { test } from 'tap'
import { Plant } from '../../schemas/plant.ts'
import { itemFormat, longestItemBytes, serializeItem } from '../../src/plants/item.ts'
import { rangeOf } from '../../src/plants/names.ts'
import { Pages } from '../../src/plants/pages.ts'
import { sqlite } from '../support/engines.ts'
import { MemoryLog } from '../support/memory-log.ts'
import { request, startApp } from '../support/service.ts'
import { openStore } from '../support/stores.ts'

const largest = serializeItem({ name: '🌿'.repeat(255), tag: '🌿'.repeat(255) })

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

test('frees the slot of a long list whose client has disconnected', async (t) => {
  const log = new MemoryLog(Array.from({ length: 300 }, () => ({ item: largest, id: undefined })))
  const pages = new Pages(log)
  const range = rangeOf(0, 300, await log.head())
  const leave = async (coding: 'identity' | 'gzip') =>
    once(((await pages.get(range, [coding])).bytes as Readable).destroy(), 'close')
  for (let n = 0; n <= 100; n++) await t.resolves(leave(n % 2 ? 'gzip' : 'identity'))
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
