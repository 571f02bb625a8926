// A batch waits for more requests, without keeping the processor busy, and no longer than it is worth.
import { type Test, test } from 'tap'
import { BatchDelay } from '../../src/plants/add/batch-delay.ts'

/** Longer than a test may take: what waits for it has failed. */
const never = 1_000_000

/** Counts the turns of the event loop that are asked for. */
function countTurns(t: Test): () => number {
  let turns = 0
  const original = globalThis.setImmediate
  const counting = ((...args: Parameters<typeof original>) => {
    turns++
    return original(...args)
  }) as typeof original
  globalThis.setImmediate = counting
  t.teardown(() => {
    globalThis.setImmediate = original
  })
  return () => turns
}

for (const commitMs of [0, 0.1, 0.9, 1, 4, 20, never])
  test(`after a commit of ${commitMs} ms a wait for nobody ends, and takes few turns of the event loop`, async (t) => {
    const turns = countTurns(t)
    const delay = new BatchDelay()
    delay.noteWaiting(1)
    await delay.wait(64, commitMs)
    t.ok(turns() >= 1, 'whoever comes in the same turn comes along')
    t.ok(turns() <= 3, `${turns()}`)
  })

test('a wait ends with the last of the expected requests, not with its timer', {
  timeout: 10_000,
}, async (t) => {
  const clock = holdTimers(t)
  const delay = new BatchDelay()
  delay.noteWaiting(1)
  let isOver = false
  const gathered = delay.wait(3, 20).then(() => (isOver = true))
  await new Promise(setImmediate)
  delay.noteWaiting(2)
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate)
  t.notOk(isOver, 'two of three are there')
  delay.noteWaiting(3)
  await gathered
  t.equal(clock.elapsed(), 0, 'no timer has fired')
})

/** Timers that never fire: what ends nevertheless was ended by something else. */
function holdTimers(t: Test): { elapsed: () => number } {
  let elapsed = 0
  const original = globalThis.setTimeout
  globalThis.setTimeout = ((work: () => void) => {
    const timer = original(() => {
      elapsed++
      work()
    }, never)
    return timer
  }) as typeof original
  t.teardown(() => {
    globalThis.setTimeout = original
  })
  return { elapsed: () => elapsed }
}
