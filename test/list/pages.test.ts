// The cache of pages: each is read once, by its name, and a list is read in parts that are bounded in bytes.
import { type Test, test } from 'tap'
import { Plant } from '../../schemas/plant.ts'
import { longestItemBytes, serializeItem } from '../../src/plants/item.ts'
import { sqlite } from '../support/engines.ts'
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

test('a list of the largest plants is read in parts of at most 256 KiB, but for the first', async (t) => {
  const largest = serializeItem({ name: '🌿'.repeat(255), tag: '🌿'.repeat(255) })
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
