// A log that was cut and grew again: lists and cursors of the lost part are told from those of the new one.
import { type Test, test } from 'tap'
import type { Plant } from '../../schemas/plant.ts'
import { sqlite } from '../support/engines.ts'
import { MemoryLog } from '../support/memory-log.ts'
import { assertProblem } from '../support/problem.ts'
import { type Answer, request, startApp } from '../support/service.ts'
import { openStore } from '../support/stores.ts'

/** Two replicas of one store, whose log can be cut. */
async function start(t: Test) {
  const database = await sqlite.createDatabase(t)
  const log = new MemoryLog()
  const open = async () => {
    const store = await openStore(database)
    return (await startApp(t, database, { store: { ...store, id: 'one store', log } })).url
  }
  const [one, two] = [await open(), await open()]
  const add = async (count: number, prefix: string) => {
    for (let n = 1; n <= count; n++) {
      const answer = await request(`${one}/plants`, { body: { name: `${prefix} ${n}`, tag: '' } })
      t.equal(answer.status, 200)
    }
  }
  return { log, one, two, add }
}

const names = (answer: Answer) => (answer.json() as Plant[]).map(({ name }) => name)
const etagOf = (answer: Answer) => answer.headers.get('etag') as string

function cursorOf(answer: Answer): string {
  return /after=([^&>]+)/.exec(answer.headers.get('link') as string)?.[1] as string
}

test('lists that lost plants have other names afterwards, and the others keep theirs', async (t) => {
  const { log, one, two, add } = await start(t)
  await add(8, 'old')
  const list = (url: string, query = '') => request(`${url}/plants${query}`)
  const before = {
    all: await list(one),
    five: await list(one, '?limit=5'),
    three: await list(one, '?limit=3'),
  }
  log.cut(4)
  await add(4, 'new')
  for (const url of [one, two]) {
    const all = await list(url)
    t.same(names(all).slice(3), ['old 4', 'new 1', 'new 2', 'new 3', 'new 4'])
    t.not(etagOf(all), etagOf(before.all))
    t.equal(etagOf(all), etagOf(await list(one)), 'every replica gives it the same name')
    t.equal(names(await list(url, '?limit=5'))[4], 'new 1')
    t.not(etagOf(await list(url, '?limit=5')), etagOf(before.five))
    t.equal(etagOf(await list(url, '?limit=3')), etagOf(before.three), 'what was not lost keeps its name')
    const asked = await request(`${url}/plants`, { headers: { 'if-none-match': etagOf(before.all) } })
    t.equal(asked.status, 200)
    t.equal(asked.text, all.text)
  }
})

test('a cursor into what was cut is 400, and one before that is good', async (t) => {
  const { log, one, two, add } = await start(t)
  await add(8, 'old')
  const cut = cursorOf(await request(`${one}/plants?limit=6`))
  const kept = cursorOf(await request(`${one}/plants?limit=4`))
  log.cut(4)
  for (const url of [one, two]) assertProblem(t, await request(`${url}/plants?after=${cut}`), 400)
  await add(4, 'new')
  for (const url of [one, two]) {
    const problem = assertProblem(t, await request(`${url}/plants?after=${cut}`), 400)
    t.equal(problem.errors?.[0]?.parameter, 'after')
    t.same(names(await request(`${url}/plants?after=${kept}`)), ['new 1', 'new 2', 'new 3', 'new 4'])
  }
  t.not(cursorOf(await request(`${one}/plants?limit=6`)), cut)
})

test('a log that is cut between the look at its head and the reading gives 503, and keeps nothing', async (t) => {
  const { log, one, add } = await start(t)
  await add(6, 'old')
  const head = log.head.bind(log)
  log.head = async () => {
    const seen = await head()
    log.head = head
    log.cut(2)
    for (let n = 0; n < 4; n++) log.add({ item: `{"name":"new ${n}","tag":""}`, id: undefined })
    return seen
  }
  const failed = await request(`${one}/plants`)
  assertProblem(t, failed, 503)
  t.equal(failed.headers.get('etag'), null)
  t.same(names(await request(`${one}/plants`)), ['old 1', 'old 2', 'new 0', 'new 1', 'new 2', 'new 3'])
})

test('a long list has no part of another log, though the log is itself again at the end', async (t) => {
  const { log, one } = await start(t)
  const fill = (name: string) => {
    log.rows = []
    log.add(...Array(1000).fill({ item: JSON.stringify({ name, tag: 'x'.repeat(500) }), id: undefined }))
    return log.rows
  }
  const [other, own] = [fill('other'), fill('own')]
  const read = log.read.bind(log)
  let reads = 0
  log.read = async (...range) => {
    const array = await read(...range)
    // The first read is of too many plants, and the second makes the first part.
    log.rows = ++reads === 2 ? other : own
    return array
  }
  await t.rejects(request(`${one}/plants`))
  t.equal(reads, 2)
})
