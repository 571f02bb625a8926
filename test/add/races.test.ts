// Races between the shared head, group commit, pages and marks: the store answers in any order, loses outcomes and
// plants, clients leave or time out, and an oracle checks every promise.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { test } from 'tap'
import { isFull, tellSeed } from '../support/full.ts'

const schedules = isFull ? 10_000 : 2000

test(`keeps every promise in ${schedules} schedules`, { timeout: 120_000 }, async (t) => {
  tellSeed(t)
  const explorer = new Worker(new URL('./race-explorer.ts', import.meta.url), {
    workerData: schedules,
    execArgv: [],
  })
  t.teardown(() => explorer.terminate())
  const [kept] = await once(explorer, 'message')
  t.equal(kept, schedules)
})
