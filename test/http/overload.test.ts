// What is bounded says so early, and leaves room for others.
import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import pino from 'pino'
import { type Test, test } from 'tap'
import { problems } from '../../schemas/problems.ts'
import { requestsPerConnection, tokensPerQuery, unknownTokens } from '../../src/limits.ts'
import { makeReadPools } from '../../src/plants/list/range.ts'
import { noMeter } from '../../src/runtime/meter.ts'
import { makeShared } from '../../src/service/shared.ts'
import type { Outcome } from '../../src/store/engine.ts'
import { makeLookUp } from '../../src/tokens/look-ups.ts'
import type { Tokens } from '../../src/tokens/tokens.ts'
import { sqlite } from '../support/engines.ts'
import { assertProblem } from '../support/problem.ts'
import { type Answer, request, startApp } from '../support/service.ts'
import { openStore, type Store } from '../support/sql-store.ts'
import { until } from '../support/until.ts'
import { compose, exchange, readAnswers, type WireAnswer } from '../support/wire.ts'

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

test('once many long lists are not read, further ones are refused, but pages are not', async (t) => {
  const { port, url } = await startApp(t, '', { store: await openFilled(t) })
  const answers = await Promise.all(Array.from({ length: readers }, () => stall(t, port)))
  const refused = answers.filter((answer) => answer?.status === 503) as WireAnswer[]
  t.ok(refused.length > 0 && refused.length < readers, `${refused.length} of ${readers} are refused`)
  for (const answer of refused) {
    t.equal(assertProblem(t, answer, 503).detail, problems.tooManyBytes.detail)
    t.match(answer.headers.get('retry-after'), /^\d+$/)
  }
  t.equal((await request(`${url}/plants?limit=10`)).status, 200)
})

test('pages that are cached count as in flight, and further ones are refused', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  const item = JSON.stringify({ name: text, tag: text })
  await store.log.append(Array.from({ length: 120 }, () => ({ item, id: undefined })))
  const released = Promise.withResolvers<void>()
  const read: Store['log']['read'] = async (after, last, epoch) => {
    if (last === 1) await released.promise
    return store.log.read(after, last, epoch)
  }
  // One thread of sixteen has 8 MiB: some twenty such pages for one token.
  const options = { store: { ...store, log: { ...store.log, read } }, shared: makeShared(16) }
  const { port, url } = await startApp(t, '', options)
  const page = (await request(`${url}/plants`)).text
  // They wait behind an answer that has to be read first.
  const pages = compose()
    .toString()
    .repeat(requestsPerConnection - 1)
  let waiting = 0
  const wait = () => {
    const socket = connect(port, '127.0.0.1').once('data', () => waiting--)
    t.teardown(() => socket.destroy())
    socket.write(`${compose({ target: '/plants?limit=1' })}${pages}`)
    waiting++
  }
  let refused: Answer | undefined
  await until(async () => {
    while (waiting < 2) wait()
    const answer = await request(`${url}/plants`)
    if (answer.status === 503) refused = answer
    return refused !== undefined
  })
  t.equal(assertProblem(t, refused as Answer, 503).detail, problems.tooManyBytes.detail)
  released.resolve()
  await until(async () => (await request(`${url}/plants`)).text === page)
})

test('a missing outcome is an error', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  const append = async () => [undefined] as unknown as Outcome[]
  const { url } = await startApp(t, '', { store: { ...store, log: { ...store.log, append } } })
  assertProblem(t, await request(`${url}/plants`, { body: { name: 'a', tag: '' } }), 500)
})

test('the number of unknown tokens in a look-up is bounded, and known ones do not wait behind them', async (t) => {
  const asked: string[][] = []
  const find = async (ids: string[]) => {
    asked.push(ids)
    return new Map()
  }
  const lookUp = makeLookUp({ find } as unknown as Tokens)
  const all = Array.from({ length: unknownTokens + 1 }, (_, n) => lookUp(`${n}`, false))
  const known = lookUp('known', true)
  await t.rejects(all.pop() as Promise<unknown>, { name: 'StoreUnavailable', outcome: 'overloaded' })
  await Promise.all([...all, known])
  t.ok(asked.at(-1)?.includes('known'))
  t.equal(asked.flat().length, unknownTokens + 1)
  t.equal(Math.max(...asked.map(({ length }) => length)), tokensPerQuery)
})

test('a page whose client left while it was being read is not sent', async (t) => {
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

test('requests that end in another order than they began are all removed', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  await store.log.append(Array.from({ length: 3 }, () => ({ item: '{"name":"a","tag":""}', id: undefined })))
  const reads = new Map<number, () => void>()
  const read: Store['log']['read'] = (after, last, epoch) =>
    new Promise((resolve) => reads.set(last, () => resolve(store.log.read(after, last, epoch))))
  let count = () => Number.NaN
  const gauge = (name: string, _help: string, read: () => number) => {
    if (name === 'plant_store_requests_in_flight') count = read
  }
  const requests = new EventEmitter()
  const { url } = await startApp(t, '', {
    store: { ...store, log: { ...store.log, read } },
    meter: { ...noMeter, gauge },
    report: () => requests.emit('ended'),
  })
  const answers: Promise<{ status: number }>[] = []
  for (const limit of [1, 2, 3]) {
    answers.push(request(`${url}/plants?limit=${limit}`))
    while (!reads.has(limit)) await setImmediate()
  }
  const left: number[] = []
  for (const limit of [1, 3, 2]) {
    const ended = once(requests, 'ended')
    reads.get(limit)?.()
    await ended
    left.push(count())
  }
  t.strictSame(left, [2, 1, 0])
  for (const answer of await Promise.all(answers)) t.equal(answer.status, 200)
})

test('of a connection that is reset all requests end, also behind a request for a tunnel', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  await store.log.append(Array.from({ length: 5 }, () => ({ item: '{"name":"a","tag":""}', id: undefined })))
  const read = () => new Promise<never>(() => {})
  let count = () => Number.NaN
  const gauge = (name: string, _help: string, read: () => number) => {
    if (name === 'plant_store_requests_in_flight') count = read
  }
  const statuses: number[] = []
  const { port } = await startApp(t, '', {
    store: { ...store, log: { ...store.log, read } },
    meter: { ...noMeter, gauge },
    report: ({ status }) => statuses.push(status),
  })
  const requests = [1, 2, 3, 4, 5].map((limit) => compose({ target: `/plants?limit=${limit}` }).toString())
  for (const last of ['', 'CONNECT plants.test:443 HTTP/1.1\r\nHost: plants.test:443\r\n\r\n']) {
    const socket = connect(port, '127.0.0.1')
    socket.write([...requests, last].join(''))
    await until(() => count() === 5)
    socket.resetAndDestroy()
    await until(() => count() === 0)
    t.strictSame(statuses.splice(0), [499, 499, 499, 499, 499])
  }
})

test('the reads of one owner that wait are bounded', async (t) => {
  const { beginnings: turns } = makeReadPools()
  const go = Promise.withResolvers<void>()
  const read = (owner: string) => turns.run(owner, () => go.promise)
  const reads = Array.from({ length: 203 }, () => read('busy'))
  await t.rejects(read('busy'), { name: 'StoreUnavailable', outcome: 'overloaded' })
  reads.push(read('modest'))
  go.resolve()
  await Promise.all(reads)
  t.pass('all others are read')
})

test('a closed store says so, and so does one whose directory cannot be made', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  await store.close()
  await t.rejects(store.log.append([{ item: '{}', id: undefined }]), {
    name: 'StoreUnavailable',
    outcome: 'nothing-added',
  })
  await t.rejects(openStore('file:/dev/null/below/plants.db', { logger }), /cannot make the directory/)
})

test('a page that is read for many clients is counted once', async (t) => {
  const store = await openStore(await sqlite.createDatabase(t), { logger })
  await store.log.append([{ item: '{"name":"a","tag":""}', id: undefined }])
  const answered = Promise.withResolvers<Buffer>()
  let reads = 0
  const read = () => {
    reads++
    return answered.promise
  }
  // One thread of sixteen has 8 MiB: as many pages of the largest size would be more than a token may hold.
  const options = { store: { ...store, log: { ...store.log, read } }, shared: makeShared(16) }
  const { app, port } = await startApp(t, '', options)
  const [connections, inRow] = [10, 4]
  let arrived = 0
  app.server.on('request', () => {
    if (++arrived === connections * inRow) answered.resolve(Buffer.from('[{"name":"a","tag":""}]'))
  })
  const bytes = compose({ target: '/plants?limit=1' }).toString().repeat(inRow)
  const all = await Promise.all(Array.from({ length: connections }, () => exchange(port, bytes, inRow)))
  t.same(new Set(all.flat().map(({ status }) => status)), new Set([200]))
  t.equal(reads, 1)
})
