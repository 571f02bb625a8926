// Explores schedules with the scheduler of fast-check, and reports how many kept every guarantee, or the first that did
// not. It runs in a thread, because the test runner tracks all JavaScript promises of its thread, which takes longer
// than the races.
import { Readable } from 'node:stream'
import { parentPort, workerData } from 'node:worker_threads'
import fc, { type Scheduler } from 'fast-check'
import { noMeter } from '../../src/metrics.ts'
import { shareCommits } from '../../src/plants/group-commit.ts'
import { makeListPlants } from '../../src/plants/list-plants.ts'
import { cursorOf } from '../../src/plants/names.ts'
import { ProblemError } from '../../src/problem-error.ts'
import type { Entry } from '../../src/store/engine.ts'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { seed } from '../support/full.ts'
import { MemoryLog } from '../support/memory-log.ts'
import { type Action, beginning, beginnings, scripts } from './race-actions.ts'
import { type Adding, type Listing, Oracle } from './race-oracle.ts'

/** The turns of the event loop, far more than any delay of a batch, after which a schedule is stuck. */
const mostIdleTurns = 1_000_000

/** One process of the service: both operations without HTTP. */
function startReplica(log: MemoryLog, oracle: Oracle) {
  const append = shareCommits(log)
  const listPlants = makeListPlants({ log, path: '/plants', meter: noMeter })

  function add(one: Adding, deadlineMs: number): void {
    append(one.entry, { deadlineMs, isGone: () => one.gone }).then(
      (outcome) => oracle.told(one, outcome),
      (error: StoreUnavailable) => oracle.told(one, error.outcome),
    )
  }

  async function list(one: Listing): Promise<void> {
    const { after, limit } = one.ask
    const last = Math.min(after, log.rows.length)
    const cursor = last === 0 ? {} : { after: cursorOf({ last, mark: log.rows[last - 1]?.mark ?? '' }) }
    const query = { ...cursor, ...(Number.isFinite(limit) && { limit }) }
    try {
      const answer = await listPlants({ method: 'GET', url: JSON.stringify(query), query, headers: {} })
      const name = String(answer.headers.etag)
      let text = ''
      if (answer.body instanceof Readable) for await (const part of answer.body) text += part
      else text = String(answer.body)
      const [, from, to, mark = ''] = /^W\/"1\.(\d+)-(\d+)\.(.*)"$/.exec(name) ?? []
      oracle.listed(name, text, one, log.listOf(Number(from), Number(to), mark))
    } catch (error) {
      // The log was cut below the cursor.
      oracle.failed(error instanceof ProblemError ? new StoreUnavailable('unread', 'cut') : error, one)
    }
  }
  return { add, list }
}

type Replica = ReturnType<typeof startReplica>
type World = { s: Scheduler; oracle: Oracle; log: MemoryLog }

/** Runs the actions of one client of a replica, one after the other. */
async function play({ s, oracle, log }: World, replica: Replica, actions: Action[]): Promise<void> {
  const later = (label: string) => s.schedule(Promise.resolve(), label)

  function add({ id, ends }: Extract<Action, { kind: 'add' }>): Promise<void> {
    return new Promise((resolve) => {
      const item = id === undefined ? oracle.nextName() : `"plant ${id}, ${oracle.nextVariant()}"`
      const late = ends === 'is late'
      const adding: Adding = { entry: { item, id }, late, gone: false, told: [], done: resolve }
      oracle.asked(adding)
      replica.add(adding, ends === 'is late' ? performance.now() : Number.POSITIVE_INFINITY)
      if (ends === 'leaves')
        void later('a writer leaves').then(() => {
          adding.gone = true
          resolve()
        })
    })
  }

  async function list(ask: Listing['ask']): Promise<void> {
    const promised = ask.after === 0 && ask.limit === Number.POSITIVE_INFINITY ? oracle.promised() : []
    const text = await new Promise<string | undefined>((resolve) => {
      const listing: Listing = { ask, gone: false, cuts: oracle.cuts, done: resolve }
      void replica.list(listing)
      if (ask.leaves)
        void later('a reader leaves').then(() => {
          listing.gone = true
          resolve(undefined)
        })
    })
    oracle.checkFresh(text, promised)
  }

  for (const one of actions) {
    await later(one.kind)
    if (one.kind === 'add') await add(one)
    else if (one.kind === 'list') await list(one)
    else if (one.kind === 'cut') oracle.cut(Math.max(0, log.entries.length - one.lose))
    else oracle.break(one.fault)
  }
}

/** Runs one scheduled step after the other, with some turns of the event loop in between, until `work` is done. */
async function drive(s: Scheduler, turns: number, work: Promise<unknown>): Promise<void> {
  let done = false
  const end = work.finally(() => (done = true))
  while (!done) {
    for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate)
    for (let idle = 0; s.count() === 0 && !done; idle++) {
      await new Promise(setImmediate)
      if (idle > mostIdleTurns) throw new Error('the schedule is stuck')
    }
    if (s.count() > 0) await s.waitOne()
  }
  await end
}

async function explore(s: Scheduler, turns: number, scripts: Action[][], beginning: Entry[]): Promise<void> {
  const log = new MemoryLog(beginning, (label) => s.schedule(Promise.resolve(), label))
  const oracle = new Oracle(log)
  const world = { s, oracle, log }
  const replicas = [startReplica(log, oracle), startReplica(log, oracle)]
  await drive(
    s,
    turns,
    Promise.all(scripts.map((script, n) => play(world, replicas[n % 3 === 2 ? 1 : 0] as Replica, script))),
  )
  // A last plant on each replica waits for everything that is still queued there.
  log.faults.length = 0
  const last: Action[] = [
    { kind: 'add', id: undefined, ends: 'answered' },
    { kind: 'list', after: 0, limit: Number.POSITIVE_INFINITY, leaves: false },
  ]
  await drive(s, turns, Promise.all(replicas.map((replica) => play(world, replica, last))))
  oracle.checkEnd()
  if (oracle.broken.length > 0) throw new Error(oracle.broken.join('; '))
}

let kept = 0
const property = fc.asyncProperty(
  fc.scheduler(),
  fc.integer({ min: 1, max: 4 }),
  scripts,
  beginning,
  async (s, turns, actions, n) => {
    await explore(s, turns, actions, beginnings[n] as Entry[])
    kept++
  },
)
await fc.assert(property, { seed, numRuns: workerData as number, endOnFailure: true })
parentPort?.postMessage(kept)
