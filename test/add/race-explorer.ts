// Explores schedules with fast-check's scheduler, and tells its parent how many kept every promise, or which did not.
// A thread of its own: the test runner follows every promise of its own thread, which takes longer than the races.
import { parentPort, workerData } from 'node:worker_threads'
import fc, { type Scheduler } from 'fast-check'
import type { FastifyReply } from 'fastify'
import { GroupCommit } from '../../src/plants/add/group-commit.ts'
import { SharedHead } from '../../src/plants/list/answer/shared-head.ts'
import { rangeOf } from '../../src/plants/list/range.ts'
import type { Entry, Head } from '../../src/store/engine.ts'
import type { StoreUnavailable } from '../../src/store/errors.ts'
import { seed } from '../support/full.ts'
import { MemoryLog } from '../support/memory-log.ts'
import { makePages, readPlain } from '../support/pages.ts'
import { type Action, beginning, beginnings, scripts } from './race-actions.ts'
import { type Adding, type Listing, Oracle } from './race-oracle.ts'
import { makeReply } from './replies.ts'

/** Far more turns of the event loop than any delay of a batch takes: then nothing happens any more. */
const mostIdleTurns = 1_000_000

/** One process of the service, as the operations join its parts. */
function startReplica(log: MemoryLog, oracle: Oracle) {
  const adding = new Map<FastifyReply, Adding>()
  const listing = new Map<FastifyReply, Listing>()
  const commits = new GroupCommit(log, (outcome, reply) => oracle.told(adding.get(reply) as Adding, outcome))
  const { pages } = makePages(log)
  const head = new SharedHead(log, (seen, reply) => void answerList(seen, listing.get(reply) as Listing))

  function add(one: Adding, deadlineMs: number): void {
    const reply = makeReply({
      isGone: () => one.gone || one.told.length > 0,
      fail: (error) => oracle.told(one, (error as StoreUnavailable).outcome),
      noteOutcome(outcome) {
        one.lost = outcome
      },
    })
    adding.set(reply, one)
    commits.append(one.entry, reply, deadlineMs)
  }

  function list(one: Listing): void {
    const reply = makeReply({ isGone: () => one.gone, fail: (error) => oracle.failed(error, one) })
    listing.set(reply, one)
    head.wait(reply)
  }

  async function answerList({ position, epochs }: Head, listing: Listing): Promise<void> {
    const { after, limit } = listing.ask
    const from = Math.min(after, position)
    const page = rangeOf(from, Math.min(from + limit, position), epochs)
    try {
      const read = await readPlain(pages, page)
      let text = ''
      if (Buffer.isBuffer(read)) text = read.toString()
      else for await (const part of read) text += part
      oracle.listed(page.name, text, listing, log.listOf(page.after, page.last, epochs.owner(page.last)))
    } catch (error) {
      oracle.failed(error, listing)
    }
  }
  return { add, list }
}

type Replica = ReturnType<typeof startReplica>
type World = { s: Scheduler; oracle: Oracle; log: MemoryLog }

/** One client of a replica: it does one thing after the other. */
async function play({ s, oracle, log }: World, replica: Replica, actions: Action[]): Promise<void> {
  const later = (label: string) => s.schedule(Promise.resolve(), label)

  function add({ id, ends }: Extract<Action, { kind: 'add' }>): Promise<void> {
    return new Promise((resolve) => {
      const item = id === undefined ? oracle.nextName() : `"plant ${id}, ${oracle.nextVariant()}"`
      const late = ends === 'is late' || ends === 'time is up'
      const adding: Adding = {
        entry: { item, id },
        lost: 'nothing-added',
        late,
        gone: false,
        told: [],
        done: resolve,
      }
      oracle.asked(adding)
      replica.add(adding, ends === 'is late' ? performance.now() : Number.POSITIVE_INFINITY)
      if (ends === 'leaves')
        void later('a writer leaves').then(() => {
          adding.gone = true
          resolve()
        })
      if (ends === 'time is up')
        void later('the time is up').then(() => adding.told.length === 0 && oracle.told(adding, adding.lost))
    })
  }

  async function list(ask: Listing['ask']): Promise<void> {
    const promised = ask.after === 0 && ask.limit === Number.POSITIVE_INFINITY ? oracle.promised() : []
    const text = await new Promise<string | undefined>((resolve) => {
      const listing: Listing = { ask, gone: false, cuts: oracle.cuts, done: resolve }
      replica.list(listing)
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

/** Lets one thing happen after the other, with some turns of the event loop in between, until `work` is done. */
async function drive(s: Scheduler, turns: number, work: Promise<unknown>): Promise<void> {
  let done = false
  const end = work.finally(() => {
    done = true
  })
  while (!done) {
    for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate)
    for (let idle = 0; s.count() === 0 && !done; idle++) {
      await new Promise(setImmediate)
      if (idle > mostIdleTurns) throw new Error('somebody waits for ever')
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
  // A last plant on each replica comes after everything that is still in its line.
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
