// Long lists: whole, in constant memory, and never a part taken for the whole.
import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import { type Test, test } from 'tap'
import { openStore } from '../src/store/open.ts'
import type { Store } from '../src/store/store.ts'
import { type Engine, engines, sqlite } from './support/engines.ts'
import { request, startApp } from './support/service.ts'
import { compose } from './support/wire.ts'

const plants = 60_000
const tag = 'x'.repeat(200)
const expected = JSON.stringify(Array.from({ length: plants }, (_, n) => ({ name: `plant ${n + 1}`, tag })))

/** A store with a long log, that counts what is read of it. */
async function openFilled(t: Test, engine: Engine) {
  const database = await engine.createDatabase(t)
  const store = await openStore(database, { logger: pino({ level: 'silent' }) })
  for (let n = 0; n < plants; n += 4000) {
    const batch = Array.from({ length: 4000 }, (_, i) => ({
      item: JSON.stringify({ name: `plant ${n + i + 1}`, tag }),
      id: undefined,
    }))
    await store.log.append(batch)
  }
  const reads = Object.assign(new EventEmitter(), { count: 0 })
  const counted: Store = {
    ...store,
    log: {
      ...store.log,
      read(after, count) {
        reads.count++
        reads.emit('read')
        return store.log.read(after, count)
      },
    },
  }
  return { database, store: counted, reads }
}

/** Asks for the whole list, and takes no more of it than the first bytes. */
async function startReading(port: number) {
  const socket = connect(port, '127.0.0.1')
  socket.write(compose())
  await once(socket, 'readable')
  return socket
}

/** Resolves when nothing has been read of the store for ten turns of its clients' requests. */
async function quiet(url: string, reads: { count: number }): Promise<number> {
  let before = -1
  while (before !== reads.count) {
    before = reads.count
    for (let turn = 0; turn < 10; turn++) await request(`${url}/plants?limit=0`)
  }
  return reads.count
}

for (const engine of engines) {
  test(`${engine.name}: long lists`, async (t) => {
    const { store, reads, database } = await openFilled(t, engine)
    const { url, port } = await startApp(t, database, { store })

    await t.test('come whole, in order and as JSON', async (t) => {
      const whole = await request(`${url}/plants`)
      t.ok(whole.text === expected, 'the same to the byte')
      t.equal(whole.headers.get('content-type'), 'application/json; charset=utf-8')
      t.equal(whole.headers.get('link'), null)
      const part = await request(`${url}/plants?limit=5001`)
      t.equal(part.text.length, JSON.stringify((whole.json() as unknown[]).slice(0, 5001)).length)
      const next = /<(.*)>/.exec(part.headers.get('link') ?? '')?.[1]
      t.equal(((await request(`${url}${next}`)).json() as unknown[]).length, 5001)
    })

    await t.test('are not read for HEAD, nor when the client has them', async (t) => {
      const { headers } = await request(`${url}/plants`, { method: 'HEAD' })
      const before = reads.count
      const etag = headers.get('etag') as string
      t.equal((await request(`${url}/plants`, { method: 'HEAD' })).status, 200)
      t.equal((await request(`${url}/plants`, { headers: { 'if-none-match': etag } })).status, 304)
      t.equal(reads.count, before)
    })

    await t.test('wait for slow readers, and stop when they leave', async (t) => {
      const before = reads.count
      const sockets = await Promise.all(Array.from({ length: 4 }, () => startReading(port)))
      const stalled = await quiet(url, reads)
      t.ok(
        stalled - before < 4 * 25,
        `${stalled - before} of ${4 * 30} parts were read for 4 clients that wait`,
      )
      for (const socket of sockets) socket.destroy()
      t.ok((await quiet(url, reads)) - stalled <= 4 * 2, 'nothing more is read once they are gone')
    })
  })
}

test('a fault in mid-list cuts the connection, so that no client takes a part for the whole', async (t) => {
  const { store, reads, database } = await openFilled(t, sqlite)
  const { url, port } = await startApp(t, database, { store })
  const socket = await startReading(port)
  await quiet(url, reads)
  const other = new DatabaseSync(fileURLToPath(database))
  other.exec('DROP TABLE plants')
  other.close()
  let received = ''
  socket.setEncoding('latin1')
  socket.on('data', (chunk) => (received += chunk))
  await once(socket, 'close')
  t.match(received, /^HTTP\/1.1 200 /)
  t.notOk(received.endsWith('0\r\n\r\n'), 'the last chunk is missing')
  t.equal((await request(`${url}/plants`)).status, 500)
})
