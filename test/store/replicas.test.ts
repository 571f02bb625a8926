// Many replicas on one database: readers of all of them see one log, and they share tokens.
import { once } from 'node:events'
import tap from 'tap'
import { Tokens } from '../../src/tokens/tokens.ts'
import { findEngine } from '../support/engines.ts'
import { assertWithin, isFull } from '../support/full.ts'
import { startApp, startService, token } from '../support/service.ts'
import type { Store } from '../support/stores.ts'
import { until } from '../support/until.ts'
import { Ledger, list, post, Reader } from './ledger.ts'

const { engine: postgres, skip } = findEngine('PostgreSQL')
const writers = 16
const perWriter = isFull ? 100 : 40

tap.test('readers page through two replicas while writers write through both', { skip }, async (t) => {
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

tap.test('a token of one replica is honoured on all, and revoked everywhere in time', { skip }, async (t) => {
  const url = await postgres.createDatabase(t)
  const replicas = [await startApp(t, url), await startApp(t, url)]
  const tokens = new Tokens(replicas[0]?.store.tokens as Store['tokens'])
  const issued = await tokens.create({ name: 'gardener' })
  const ask = async ({ url }: { url: string }) =>
    (await fetch(`${url}/plants`, { headers: { authorization: `Bearer ${issued}` } })).status
  t.strictSame(await Promise.all(replicas.map(ask)), [200, 200])

  t.equal(await tokens.revoke(String(issued).split('_')[1] as string), true)
  const revoked = performance.now()
  await until(async () => (await Promise.all(replicas.map(ask))).join() === '401,401')
  assertWithin(t, performance.now() - revoked, 5000, 'refused everywhere')
})
