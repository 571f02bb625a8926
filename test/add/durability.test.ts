// Each acknowledged plant is in the log, exactly once and without gaps: after kills of a writing process, and in races
// between the shared head, group commit, pages and marks.
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { test } from 'tap'
import { Ledger, list, post } from '../store/ledger.ts'
import { sqlite } from '../support/engines.ts'
import { countRounds, isFull, makeRandom, tellSeed } from '../support/full.ts'
import { startService } from '../support/service.ts'

const kills = countRounds(20, 3)
const writers = 32
/** The longest time from the first acknowledged plants of a round to its kill. */
const maxRoundMs = 300

test(`no acknowledged plant is lost in ${kills} kills under ${writers} writers`, async (t) => {
  tellSeed(t)
  const random = makeRandom()
  const database = await sqlite.createDatabase(t)
  const ledger = new Ledger()
  let former: string[] = []
  for (let round = 0; round <= kills; round++) {
    const service = await startService(t, { DATABASE_URL: database, LOG_LEVEL: 'error' })
    const { names } = await list(`${service.url}/plants`)
    t.same(ledger.findFaults(names), [], `round ${round}: each acknowledged plant is in the log once`)
    t.same(names.slice(0, former.length), former, 'in the same order as before')
    const file = new DatabaseSync(new URL(database), { readOnly: true })
    const log = file
      .prepare('SELECT count(*) AS n, min(position) AS first, max(position) AS last FROM plants')
      .get()
    file.close()
    const { length: n } = names
    t.match(log, n === 0 ? { n } : { n, first: 1, last: n }, 'without a gap')
    former = names
    if (round === kills) break
    const writing = Array.from({ length: writers }, async (_, writer) => {
      for (let n = 0; await post(ledger, service.url, { name: `${round}-${writer}-${n}`, tag: '' }); n++);
    })
    await ledger.more(writers)
    await sleep(random() * maxRoundMs)
    service.child.kill('SIGKILL')
    await Promise.all(writing)
    t.match(await service.ended, { signal: 'SIGKILL' })
  }
  const { acknowledged, refused, unknown } = ledger
  t.same([refused.size, unknown], [0, 0], 'no addition failed for another reason')
  t.comment(`${acknowledged.size} acknowledged, ${former.length} in the log`)
  t.ok(acknowledged.size >= kills * writers)
})

const schedules = isFull ? 10_000 : 2000

test(`keeps all guarantees in ${schedules} random schedules`, { timeout: 120_000 }, async (t) => {
  tellSeed(t)
  const explorer = new Worker(new URL('./race-explorer.ts', import.meta.url), {
    workerData: schedules,
    execArgv: [],
  })
  t.teardown(() => explorer.terminate())
  const [kept] = await once(explorer, 'message')
  t.equal(kept, schedules)
})
