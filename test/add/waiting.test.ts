// Group commit, without HTTP: which plants share a batch, which are left out, and the bounded queue.
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { shareCommits } from '../../src/plants/group-commit.ts'
import type { Entry, Outcome, PlantLog } from '../../src/store/engine.ts'
import { entry, unavailable } from '../support/stores.ts'

/** A log whose batches are committed when `commit` is called, and a group commit on it. */
function makeLog() {
  const batches: { entries: Entry[]; deadlineMs?: number; commit: (outcomes?: Outcome[]) => void }[] = []
  const append: PlantLog['append'] = (entries, options) =>
    new Promise((resolve) => {
      const commit = (outcomes: Outcome[] = entries.map(() => 'added')) => resolve(outcomes)
      batches.push({ entries, ...options, commit })
    })
  const unused = () => Promise.reject(new Error('not read here'))
  const log: PlantLog = { append, head: unused, read: unused }
  return { batches, log, append: shareCommits(log) }
}

const stays = () => ({ deadlineMs: performance.now() + 4500, isGone: () => false })
const turn = () => new Promise(setImmediate)

test('puts plants that arrive during a commit into the next batch', async (t) => {
  const { batches, append } = makeLog()
  const first = append(entry('a'), stays())
  await turn()
  await turn()
  const { deadlineMs, isGone } = stays()
  const others = ['b', 'c', 'd'].map((name, n) =>
    append(entry(name), { deadlineMs: deadlineMs - (n % 2), isGone }),
  )
  await turn()
  t.equal(batches.length, 1)
  batches[0]?.commit()
  t.equal(await first, 'added')
  while (batches.length < 2) await turn()
  t.same(batches[1]?.entries, [entry('b'), entry('c'), entry('d')])
  t.equal(batches[1]?.deadlineMs, deadlineMs - 1, 'the earliest deadline of its plants')
  batches[1]?.commit(['added', 'replayed', 'conflict'])
  t.same(await Promise.all(others), ['added', 'replayed', 'conflict'])
})

test('waits for clients that just got a response to join the next batch', async (t) => {
  const sizes: number[] = []
  const commit: PlantLog['append'] = async (entries) => {
    sizes.push(entries.length)
    await sleep(5)
    return entries.map(() => 'added')
  }
  const append = shareCommits({ ...makeLog().log, append: commit })
  const write = async (name: string) => {
    for (let n = 0; n < 5; n++) {
      await append(entry(name), stays())
      for (let turns = 0; turns < 3; turns++) await turn()
    }
  }
  const first = write('a')
  while (sizes.length === 0) await turn()
  await Promise.all([first, ...['b', 'c', 'd'].map(write)])
  // Without the wait, the first client and the others would alternate, which makes ten batches.
  t.ok(sizes.length <= 8, `batches of ${sizes}`)
})

test('does not add a plant whose client has disconnected or whose deadline is near', async (t) => {
  const { batches, append } = makeLog()
  const gone = append(entry('gone'), { ...stays(), isGone: () => true })
  const late = append(entry('late'), { deadlineMs: performance.now() + 600, isGone: () => false })
  const added = append(entry('added'), stays())
  // Only the late one is a failure of the store, which must still be logged.
  await t.rejects(gone, { ...unavailable('nothing-added'), isQuiet: true })
  await t.rejects(late, { ...unavailable('nothing-added'), isQuiet: false })
  const sent = batches.map(({ entries }) => entries)
  t.same(sent, [[entry('added')]])
  batches[0]?.commit()
  t.equal(await added, 'added')
})

test('refuses a plant as overloaded if 4096 are waiting', async (t) => {
  const { batches, append } = makeLog()
  const all = Array.from({ length: 4096 }, (_, n) => append(entry(`${n}`), stays()))
  await t.rejects(append(entry('one more'), stays()), unavailable('overloaded'))
  while (batches.length === 0) await turn()
  batches[0]?.commit()
  t.equal((await Promise.all(all)).length, 4096)
})

const folder = new URL('../../src/plants/', import.meta.url)

test('src/plants imports nothing from Fastify, node:http or the modules that serve requests', async (t) => {
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts'))
  t.ok(files.length > 0)
  for (const name of files) {
    const imports = readFileSync(new URL(name, folder), 'utf8').matchAll(/from '([^']+)'/g)
    for (const [, source = ''] of imports)
      t.notMatch(source, /fastify|node:https?|\/(plugins|routes|app|server)\b/, `${name}: ${source}`)
  }
})
