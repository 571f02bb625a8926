// Content codings of lists, by the weights in Accept-Encoding (RFC 9110, section 12.5.3).
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, zstdDecompress } from 'node:zlib'
import { type Test, test } from 'tap'
import { noMeter } from '../../src/metrics.ts'
import { negotiate } from '../../src/plants/codings.ts'
import { rangeOf } from '../../src/plants/names.ts'
import { Pages } from '../../src/plants/pages.ts'
import { fill } from '../support/copies.ts'
import { sqlite } from '../support/engines.ts'
import { request, startApp, token } from '../support/service.ts'
import { countReads, open, openStore } from '../support/stores.ts'

const decode: Record<string, (bytes: Buffer) => Promise<Buffer>> = {
  zstd: promisify(zstdDecompress),
  br: promisify(brotliDecompress),
  gzip: promisify(gunzip),
}

/** Values of Accept-Encoding, and the acceptable codings, best first. */
const accepted: [header: string | undefined, codings: string][] = [
  [undefined, 'identity'],
  ['', 'identity'],
  ['gzip', 'gzip,identity'],
  ['x-gzip', 'gzip,identity'],
  ['GZIP', 'gzip,identity'],
  ['gzip, deflate, br, zstd', 'zstd,br,gzip,identity'],
  ['br;q=0.5, gzip;q=0.501', 'gzip,br,identity'],
  ['gzip;q=0', 'identity'],
  ['zstd;q=0, gzip', 'gzip,identity'],
  ['identity;q=1, gzip;q=0.5', 'identity,gzip'],
  ['gzip, identity;q=0', 'gzip'],
  ['*', 'identity,gzip,br,zstd'],
  ['*;q=0', 'identity'],
  ['*;q=0, br', 'br'],
  ['br, *;q=0.1', 'br,identity,gzip,zstd'],
  ['br;q=0.5, *', 'identity,gzip,zstd,br'],
  ['identity;q=0.1, *;q=0.8, gzip;q=0.5', 'br,zstd,gzip,identity'],
  ['identity;q=0', 'identity'],
  ['deflate', 'identity'],
  ['gzip;q=2, br;q=x, zstd;q=1.5', 'identity'],
]

test('orders codings by the weights in Accept-Encoding', async (t) => {
  for (const [header, codings] of accepted) t.equal(negotiate(header).join(), codings, String(header))
})

/** A service with this number of plants that counts the reads of its log. */
async function start(t: Test, plants: number, meter = noMeter) {
  const store = await openStore(await sqlite.createDatabase(t))
  const items = Array.from({ length: plants }, (_, n) =>
    JSON.stringify({ name: `山椒 ${n}`, tag: 'x'.repeat(40) }),
  )
  await store.log.append(items.map((item) => ({ item, id: undefined })))
  const counted = countReads(store)
  const { url } = await startApp(t, '', { store: counted.store, meter })
  return { url, reads: counted.reads, list: `[${items}]` }
}

/** Requests a list in a coding, without decoding it as fetch does. */
async function ask(url: string, coding: string) {
  const headers = { authorization: `Bearer ${token}`, 'accept-encoding': coding }
  const [answer] = (await once(get(url, { headers }), 'response')) as [IncomingMessage]
  return { headers: answer.headers, body: Buffer.concat(await answer.toArray()) }
}

for (const [kind, plants] of [
  ['a page', 100],
  ['a long list', 9000],
] as const)
  test(`${kind} is the same in each coding, with one ETag and a Vary`, async (t) => {
    const { url, list } = await start(t, plants)
    const { headers: plain } = await ask(`${url}/plants`, 'identity')
    for (const [coding, decompress] of Object.entries(decode)) {
      const { headers, body } = await ask(`${url}/plants`, coding)
      t.equal(headers['content-encoding'], coding)
      t.equal(headers.vary, 'Accept-Encoding')
      t.equal(headers.etag, plain.etag)
      t.equal(String(await decompress(body)), list)
      t.ok(body.length < list.length / 4, `${body.length} of ${list.length} bytes`)
    }
  })

test('caches a compressed page without the rest of its buffer', async (t) => {
  const store = await open(t, await sqlite.createDatabase(t))
  await fill(store, 100)
  const pages = new Pages(store.log)
  const range = rangeOf(0, 100, await store.log.head())
  for (const coding of ['zstd', 'br', 'gzip'] as const) {
    await pages.get(range, [coding])
    const { bytes } = (await pages.get(range, [coding])) as { bytes: Buffer }
    t.equal(bytes.buffer.byteLength, bytes.length, coding)
  }
})

test('reads a page once, and does not compress small ones', async (t) => {
  const counters: Record<string, () => unknown> = {}
  const counter = (name: string, _help: string, read: () => unknown) => {
    counters[name] = read
  }
  const { url, reads } = await start(t, 100, { ...noMeter, counter, gauge: counter })
  const page = `${url}/plants?limit=99`
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask(page, 'br')))
  t.equal(new Set(answers.map(({ body }) => body.toString('base64'))).size, 1)
  await request(`${url}/plants`, { body: { name: 'another', tag: '' } })
  for (const coding of ['br', 'gzip', 'identity']) await ask(page, coding)
  t.equal(reads.count, 1, 'read once, even for later requests and after an addition')
  const bytes = Number(counters.plant_store_page_cache_bytes?.())
  t.ok(bytes > Number(answers[0]?.body.length), 'the cache knows its size')
  const hits = () => counters.plant_store_page_cache_hits_total?.()
  const before = Number(hits())
  for (let n = 0; n < 2; n++)
    t.equal((await ask(`${url}/plants?limit=3`, 'br')).headers['content-encoding'], undefined)
  t.equal(hits(), before + 1, 'a small page counts as found in the cache')
  t.equal((await ask(`${url}/plants?limit=3`, 'br, identity;q=0')).headers['content-encoding'], 'br')
})
