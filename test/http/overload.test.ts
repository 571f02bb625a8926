// What is bounded says so early, and leaves room for others.
import { once } from 'node:events'
import { connect } from 'node:net'
import pino from 'pino'
import { type Test, test } from 'tap'
import { ReadTurns } from '../src/plants/read-turns.ts'
import { openStore } from '../src/store/open.ts'
import type { Outcome, Store } from '../src/store/store.ts'
import { LookUps } from '../src/tokens/look-ups.ts'
import type { Tokens } from '../src/tokens/tokens.ts'
import { sqlite } from './support/engines.ts'
import { assertProblem } from './support/problem.ts'
import { request, startApp } from './support/service.ts'
import { compose, readAnswers, type WireAnswer } from './support/wire.ts'

const logger = pino({ level: 'silent' })
/** 2 KB each: more than a connection that nobody reads can hold. */
const text = '🌿'.repeat(255)
const plants = 8000
/** Twice the bytes that the lists of one token may hold. */
const readers = 260

async function openFilled(t: Test): Promise<Store> {
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  const item = JSON.stringify({ name: text, tag: text })
  for (let n = 0; n < plants; n += 1000)
    await store.log.append(Array.from({ length: 1000 }, () => ({ item, id: undefined })))
  return store
}

/** Asks for a list and reads no more than its beginning; resolves to the answer when it is a short one. */
async function stall(t: Test, port: number): Promise<WireAnswer | undefined> {
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.write(compose())
  const [first] = await once(socket.setEncoding('latin1'), 'data')
  socket.pause()
  return readAnswers(first)[0]
}

test('long lists that nobody reads are refused at last, and pages are not', async (t) => {
  const { port, url } = await startApp(t, '', { store: await openFilled(t) })
  const answers = await Promise.all(Array.from({ length: readers }, () => stall(t, port)))
  const refused = answers.filter((answer) => answer?.status === 503) as WireAnswer[]
  t.ok(refused.length > 0 && refused.length < readers, `${refused.length} of ${readers} are refused`)
  for (const answer of refused) {
    t.match(assertProblem(t, answer, 503).detail, /too much/i)
    t.match(answer.headers.get('retry-after'), /^\d+$/)
  }
  t.equal((await request(`${url}/plants?limit=10`)).status, 200)
})

test('a missing outcome is an error', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  const append = async () => [undefined] as unknown as Outcome[]
  const { url } = await startApp(t, '', { store: { ...store, log: { ...store.log, append } } })
  assertProblem(t, await request(`${url}/plants`, { body: { name: 'a', tag: '' } }), 500)
})

test('unknown tokens that wait to be looked up are a thousand at most, and those known before come first', async (t) => {
  const asked: string[][] = []
  const find = async (ids: string[]) => {
    asked.push(ids)
    return new Map()
  }
  const lookUps = new LookUps({ find } as unknown as Tokens)
  const all = Array.from({ length: 1001 }, (_, n) => lookUps.find(`${n}`, { known: false }))
  const known = lookUps.find('known', { known: true })
  await t.rejects(all.pop() as Promise<unknown>, { name: 'StoreUnavailable', outcome: 'overloaded' })
  await Promise.all([...all, known])
  t.equal(asked[0]?.[0], 'known')
  t.equal(asked.flat().length, 1001)
})

test('a page whose client left while it was read is sent to nobody', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  await store.log.append([{ item: '{"name":"a","tag":""}', id: undefined }])
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<Buffer>()]
  const read = () => {
    asked.resolve()
    return answered.promise
  }
  const gone = Promise.withResolvers<number>()
  const report = ({ status }: { status: number }) => gone.resolve(status)
  const { port, url } = await startApp(t, '', { store: { ...store, log: { ...store.log, read } }, report })
  const socket = connect(port, '127.0.0.1')
  socket.write(compose({ target: '/plants?limit=1' }))
  await asked.promise
  socket.resetAndDestroy()
  t.equal(await gone.promise, 499)
  answered.resolve(Buffer.from('[{"name":"a","tag":""}]'))
  t.equal((await request(`${url}/plants?limit=1`)).text, '[{"name":"a","tag":""}]')
})

test('the reads of one owner that wait are bounded', async (t) => {
  const turns = new ReadTurns()
  const go = Promise.withResolvers<void>()
  const read = (owner: string) => turns.run(owner, () => go.promise)
  const reads = Array.from({ length: 203 }, () => read('busy'))
  await t.rejects(read('busy'), { name: 'StoreUnavailable', outcome: 'overloaded' })
  reads.push(read('modest'))
  go.resolve()
  await Promise.all(reads)
  t.pass('all others are read')
})

test('a store that is closed says so, and so does one that cannot have its directory', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  await store.close()
  await t.rejects(store.log.append([{ item: '{}', id: undefined }]), {
    name: 'StoreUnavailable',
    outcome: 'nothing-added',
  })
  await t.rejects(openStore('file:/dev/null/below/plants.db', { logger }), /cannot make the directory/)
})
