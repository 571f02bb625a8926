// Two services on one database: lists are never stale, and readers of both see the same log.
import { once } from 'node:events'
import { test } from 'tap'
import { engines } from '../support/engines.ts'
import { isFull } from '../support/full.ts'
import { request, startService } from '../support/service.ts'
import { Ledger, list, post, Reader } from './ledger.ts'

const writers = 16
const perWriter = isFull ? 100 : 40

for (const { name, createDatabase } of engines)
  test(`${name}: readers page through two services while writers add through both`, async (t) => {
    const env = { DATABASE_URL: await createDatabase(t), LOG_LEVEL: 'error' }
    const urls = [(await startService(t, env)).url, (await startService(t, env)).url]
    const ledger = new Ledger()
    const readers = Array.from({ length: 4 }, (_, index) => new Reader(7 * (index + 1)))
    let writing = true
    const write = async (writer: number) => {
      for (let n = 0; n < perWriter; n++)
        await post(ledger, urls[(writer + n) % 2] as string, { name: `${writer}-${n}`, tag: '' })
    }
    const read = async (reader: Reader, index: number) => {
      while (writing) {
        await once(ledger, 'acknowledged')
        // Each reader alternates between the services. It throws if an acknowledged plant is missing.
        await reader.readOn(urls[(index + ledger.acknowledged.size) % 2] as string, ledger)
      }
    }
    const reading = Promise.all(readers.map(read))
    await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)))
    writing = false
    ledger.emit('acknowledged')
    await reading

    await Promise.all(readers.map((reader, index) => reader.readOn(urls[index % 2] as string, ledger)))
    const { names } = await list(`${urls[0]}/plants`)
    t.equal(ledger.acknowledged.size, writers * perWriter)
    t.equal(names.length, writers * perWriter)
    t.strictSame(ledger.findFaults(names), [], 'each plant is in the log once')
    for (const reader of readers) t.strictSame(reader.names, names, 'every reader saw this order')
    const ofFirst = names.filter((name) => name.startsWith('0-'))
    const inOrder = ofFirst.map((_, n) => `0-${n}`)
    t.strictSame(ofFirst, inOrder, 'the plants of a writer are in its order')
    const answers = await Promise.all(urls.map((url) => request(`${url}/plants`)))
    t.equal(answers[0]?.headers.get('etag'), answers[1]?.headers.get('etag'))
  })
