// Many replicas on one database: readers of all of them see one log.
import { once } from 'node:events'
import { findEngine, testPostgres } from '../support/engines.ts'
import { isFull } from '../support/full.ts'
import { startService, token } from '../support/service.ts'
import { Ledger, list, post, Reader } from './ledger.ts'

const { engine: postgres } = findEngine('PostgreSQL')
const writers = 16
const perWriter = isFull ? 100 : 40

testPostgres('readers page through two replicas while writers write through both', async (t) => {
  const env = { DATABASE_URL: await postgres.createDatabase(t), LOG_LEVEL: 'error' }
  const urls = [(await startService(t, env)).url, (await startService(t, env)).url]
  const ledger = new Ledger()
  const readers = Array.from({ length: 4 }, (_, index) => new Reader(token, 7 * (index + 1)))
  let writing = true
  const write = async (writer: number) => {
    for (let n = 0; n < perWriter; n++)
      await post(ledger, urls[(writer + n) % 2] as string, { name: `${writer}-${n}`, tag: '' }, token)
  }
  const read = async (reader: Reader, index: number) => {
    while (writing) {
      await once(ledger, 'acknowledged')
      // Each reader goes back and forth between the replicas, too.
      await reader.readOn(urls[(index + ledger.acknowledged.size) % 2] as string, ledger)
    }
  }
  const reading = Promise.all(readers.map(read))
  await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)))
  writing = false
  ledger.emit('acknowledged')
  await reading

  await Promise.all(readers.map((reader, index) => reader.readOn(urls[index % 2] as string, ledger)))
  const { names } = await list(`${urls[0]}/plants`, token)
  t.equal(names.length, writers * perWriter)
  t.equal(ledger.acknowledged.size, writers * perWriter)
  t.strictSame(ledger.findFaults(names), [], 'each plant is there once')
  for (const reader of readers)
    t.strictSame(reader.names, names, 'each reader saw each plant once, in this order')
})
