// A log that loses plants and grows again: cursors and long lists of the lost part do not mix with the new one.
import { type Test, test } from 'tap'
import { MemoryLog } from '../support/memory-log.ts'
import { assertProblem } from '../support/problem.ts'
import { request, startApp } from '../support/service.ts'
import { entry, openFile } from '../support/stores.ts'

/** A service on a log that can be cut. */
async function start(t: Test) {
  const { store } = await openFile(t)
  const log = new MemoryLog()
  const { url } = await startApp(t, '', { store: { ...store, log } })
  return { log, url }
}

test('refuses a cursor into the part of the log that was lost, and accepts one before it', async (t) => {
  const { log, url } = await start(t)
  const cursorOf = async (query: string) =>
    /after=([^&>]+)/.exec((await request(`${url}/plants${query}`)).headers.get('link') ?? '')?.[1]
  for (let n = 1; n <= 8; n++) log.add(entry(`old ${n}`))
  const [lost, kept] = [await cursorOf('?limit=6'), await cursorOf('?limit=4')]
  log.cut(4)
  assertProblem(t, await request(`${url}/plants?after=${lost}`), 400)
  for (let n = 1; n <= 4; n++) log.add(entry(`new ${n}`))
  const problem = assertProblem(t, await request(`${url}/plants?after=${lost}`), 400)
  t.equal(problem.errors?.[0]?.parameter, 'after')
  t.match((await request(`${url}/plants?after=${kept}`)).json(), [{ name: 'new 1' }, {}, {}, {}])
  t.not(await cursorOf('?limit=6'), lost)
})

test('aborts a long list when the log is replaced, even if it is restored in time', async (t) => {
  const { log, url } = await start(t)
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
    // The first read has too many plants, and the second makes the first part.
    log.rows = ++reads === 2 ? other : own
    return array
  }
  await t.rejects(request(`${url}/plants`))
  t.equal(reads, 2)
})
