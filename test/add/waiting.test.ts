// Those who wait together, for a batch or for a look at the head: one answer each, and nobody pays for another.
import type { FastifyReply } from 'fastify'
import { type Test, test } from 'tap'
import { maxHeadRequests, shortestAttemptMs } from '../../src/limits.ts'
import { GroupCommit } from '../../src/plants/add/group-commit.ts'
import { SharedHead } from '../../src/plants/list/answer/shared-head.ts'
import { TimeSlices } from '../../src/runtime/time-slices.ts'
import type { Entry, Outcome, PlantLog } from '../../src/store/engine.ts'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { MemoryLog } from '../support/memory-log.ts'
import { makeReply } from './replies.ts'

/** What became of each that waited, by its name, in the order in which they were told. */
type Told = [name: string, what: unknown][]

const never = Number.POSITIVE_INFINITY
const maxWaitingPlants = 4096

/** A log whose batches wait until they are let go. */
function makeHeldLog() {
  const log = new MemoryLog()
  const batches: { names: string[]; deadlineMs: number | undefined; go: () => void }[] = []
  const append = log.append.bind(log)
  const held: PlantLog = {
    head: () => log.head(),
    read: (after, last, epoch) => log.read(after, last, epoch),
    async append(entries, deadlineMs) {
      await new Promise<void>((go) => {
        batches.push({ names: entries.map(({ item }) => item), deadlineMs, go })
      })
      return append(entries)
    },
  }
  return { log, held, batches }
}

function makeCommits(log: PlantLog, odd?: string) {
  const told: Told = []
  const gone = new Set<string>()
  const handedOver: string[] = []
  const names = new Map<FastifyReply, string>()
  const commits = new GroupCommit(log, (outcome, reply) => {
    const name = String(names.get(reply))
    if (name === odd) throw new Error('an odd answer')
    told.push([name, outcome])
  })
  const add = (name: string, deadlineMs = never) => {
    const reply = makeReply({
      isGone: () => gone.has(name),
      fail: (error) => told.push([name, (error as StoreUnavailable).outcome ?? (error as Error).message]),
      noteOutcome: () => handedOver.push(name),
    })
    names.set(reply, name)
    commits.append(plant(name), reply, deadlineMs)
  }
  return { commits, add, told, gone, handedOver }
}

function plant(item: string): Entry {
  return { item, id: undefined }
}

async function until(t: Test, holds: () => boolean): Promise<void> {
  for (let turn = 0; turn < 100_000 && !holds(); turn++) await new Promise(setImmediate)
  t.ok(holds(), 'what is waited for comes')
}

test('an answer that throws is a failure of its own, and no other', async (t) => {
  const { add, told } = makeCommits(new MemoryLog(), 'b')
  for (const name of ['a', 'b', 'c']) add(name)
  await until(t, () => told.length === 3)
  t.strictSame(told, [
    ['a', 'added'],
    ['b', 'an odd answer'],
    ['c', 'added'],
  ])
})

test('each of a batch is told the outcome of its own plant', async (t) => {
  const outcomes: Outcome[] = ['added', 'conflict', 'replayed']
  const log = Object.assign(new MemoryLog(), { append: async () => outcomes })
  const { add, told } = makeCommits(log)
  for (const name of ['a', 'b', 'c']) add(name)
  await until(t, () => told.length === 3)
  t.strictSame(told, [
    ['a', 'added'],
    ['b', 'conflict'],
    ['c', 'replayed'],
  ])
})

test('a batch that fails is told to each, and the next one is added', async (t) => {
  const log = new MemoryLog()
  log.faults.push('lost')
  const { add, told } = makeCommits(log)
  for (const name of ['a', 'b']) add(name)
  await until(t, () => told.length === 2)
  t.strictSame(told, [
    ['a', 'unknown'],
    ['b', 'unknown'],
  ])
  add('c')
  await until(t, () => told.length === 3)
  t.strictSame(told[2], ['c', 'added'])
})

const short: [what: string, outcomes: Outcome[]][] = [
  ['one outcome too few', ['added', 'added']],
  ['one outcome too many', ['added', 'added', 'added', 'added']],
  ['no outcome', []],
]
for (const [what, outcomes] of short)
  test(`a batch with ${what} fails as a whole, and nothing is known of it`, async (t) => {
    const { held } = makeHeldLog()
    const { add, told } = makeCommits({ ...held, append: async () => outcomes })
    for (const name of ['a', 'b', 'c']) add(name)
    await until(t, () => told.length === 3)
    t.strictSame(
      told,
      ['a', 'b', 'c'].map((name) => [name, 'unknown']),
    )
  })

test('the plant of a client that left before its batch began is not added; later it may be', async (t) => {
  const { log, held, batches } = makeHeldLog()
  const { add, told, gone, handedOver } = makeCommits(held)
  add('first')
  await until(t, () => batches.length === 1)
  for (const name of ['stays', 'goes', 'stays too']) add(name)
  t.strictSame(handedOver, ['first'], 'those in line are not handed over yet')
  gone.add('goes').add('first')
  batches[0]?.go()
  await until(t, () => batches.length === 2)
  t.strictSame(batches[1]?.names, ['stays', 'stays too'])
  t.strictSame(handedOver, ['first', 'stays', 'stays too'])
  batches[1]?.go()
  await until(t, () => told.length === 2)
  t.strictSame(
    log.entries.map(({ item }) => item),
    ['first', 'stays', 'stays too'],
  )
})

test('a batch has the deadline of its oldest plant, and one that is too late does not delay it', async (t) => {
  const { held, batches } = makeHeldLog()
  const { add, told, handedOver } = makeCommits(held)
  const nowMs = performance.now()
  add('late', nowMs + shortestAttemptMs / 2)
  add('older', nowMs + 60_000)
  add('newer', nowMs + 61_000)
  await until(t, () => batches.length === 1)
  t.strictSame(batches[0]?.names, ['older', 'newer'])
  t.equal(batches[0]?.deadlineMs, nowMs + 60_000)
  t.strictSame(told, [['late', 'nothing-added']])
  t.notOk(handedOver.includes('late'))
  batches[0]?.go()
})

test('what has time left when a batch is given up is tried again, if nothing was added for certain', async (t) => {
  for (const [outcome, isTriedAgain] of [
    ['nothing-added', true],
    ['unknown', false],
  ] as const) {
    const log = new MemoryLog()
    const append = log.append.bind(log)
    let batches = 0
    const failing = Object.assign(log, {
      append: async (entries: Entry[], deadlineMs = never) => {
        if (++batches > 1) return append(entries)
        while (performance.now() < deadlineMs - shortestAttemptMs) await new Promise(setImmediate)
        throw new StoreUnavailable(outcome, 'the time was up')
      },
    })
    const { add, told } = makeCommits(failing)
    add('older', performance.now() + shortestAttemptMs + 200)
    add('newer')
    while (told.length < 2) await new Promise(setImmediate)
    const expected = [
      ['older', outcome],
      ['newer', isTriedAgain ? 'added' : outcome],
    ]
    t.strictSame(told, expected)
  }
})

test(`${maxWaitingPlants} plants wait, and not one more`, async (t) => {
  const { held, batches } = makeHeldLog()
  const { add, told } = makeCommits(held)
  add('first')
  await until(t, () => batches.length === 1)
  for (let n = 0; n < maxWaitingPlants; n++) add(`${n}`)
  t.throws(() => add('one more'), new StoreUnavailable('overloaded', 'too many plants are waiting'))
  batches[0]?.go()
  await until(t, () => batches.length === 2)
  t.equal(batches[1]?.names.length, maxWaitingPlants)
  add('again')
  batches[1]?.go()
  await until(t, () => batches.length === 3)
  batches[2]?.go()
  await until(t, () => told.length === maxWaitingPlants + 2)
})

test('a read of the head is for requests that came before it; each fails by itself', async (t) => {
  const looks: ((position: number) => void)[] = []
  const { epochs } = await new MemoryLog().head()
  const log: PlantLog = {
    ...makeHeldLog().held,
    head: () => new Promise((resolve) => looks.push((position) => resolve({ position, epochs }))),
  }
  const told: Told = []
  const gone = new Set<string>()
  const names = new Map<FastifyReply, string>()
  const head = new SharedHead(log, ({ position }, reply) => {
    const name = String(names.get(reply))
    if (name === 'odd') throw new Error('an odd answer')
    told.push([name, position])
  })
  const wait = (name: string) => {
    const fail = (error: unknown) => told.push([name, (error as Error).message])
    const reply = makeReply({ isGone: () => gone.has(name), fail })
    names.set(reply, name)
    head.wait(reply)
  }
  for (const name of ['a', 'odd', 'b']) wait(name)
  await until(t, () => looks.length === 1)
  wait('too late')
  looks[0]?.(1)
  // The next look begins while the answers of this one leave.
  await until(t, () => looks.length === 2 && told.length === 3)
  t.strictSame(told, [
    ['a', 1],
    ['odd', 'an odd answer'],
    ['b', 1],
  ])
  gone.add('left')
  wait('left')
  looks[1]?.(2)
  await until(t, () => told.length === 4)
  t.strictSame(told[3], ['too late', 2])
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
  t.equal(looks.length, 2, 'nobody looks for those who have gone')
})

test('long work lets the event loop turn, and keeps its order', async (t) => {
  const slices = new TimeSlices()
  const done: number[] = []
  let loops = 0
  let counting = true
  const count = () => {
    loops++
    if (counting) setImmediate(count)
  }
  setImmediate(count)
  const pieces = 100
  for (let n = 0; n < pieces; n++)
    slices.run(() => {
      const endMs = performance.now() + 1
      while (performance.now() < endMs);
      done.push(n)
    }, 'one')
  t.ok(done.length < pieces / 2, `${done.length} at once`)
  await until(t, () => done.length === pieces)
  counting = false
  t.strictSame(
    done,
    Array.from({ length: pieces }, (_, n) => n),
  )
  t.ok(loops >= 4, `${loops} turns`)
})

test('many requests at once do not wait for the end of the turn', (t) => {
  const { held } = makeHeldLog()
  let looks = 0
  const log: PlantLog = {
    ...held,
    head() {
      looks++
      return held.head()
    },
  }
  const head = new SharedHead(log, () => {})
  for (let n = 0; n < maxHeadRequests; n++) head.wait(makeReply({}))
  t.equal(looks, 0)
  head.wait(makeReply({}))
  t.equal(looks, 1)
  t.end()
})

test('short work does not wait behind long work', async (t) => {
  const slices = new TimeSlices()
  const done: string[] = []
  const work = (name: string) => () => {
    const endMs = performance.now() + 1
    while (performance.now() < endMs);
    done.push(name)
  }
  for (let n = 0; n < 200; n++) slices.run(work('much'), 'much')
  const before = done.length
  for (const name of ['one', 'two', 'two']) slices.run(work(name), name)
  await until(t, () => done.length === 203)
  t.strictSame(done.slice(before, before + 5), ['much', 'one', 'two', 'much', 'two'])
})

test('short work is done at once', (t) => {
  const slices = new TimeSlices()
  let done = false
  slices.run(() => {
    done = true
  }, 'one')
  t.ok(done)
  t.end()
})
