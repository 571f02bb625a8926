// A batch waits for more requests without keeping the processor busy.
import { type Test, test } from 'tap'
import { BatchDelay } from '../../src/plants/add/batch-delay.ts'

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

for (const commitMs of [0, 0.1, 0.9, 1, 4, 20])
  test(`after a commit of ${commitMs} ms a wait for nobody takes few turns of the event loop`, async (t) => {
    const turns = countTurns(t)
    const delay = new BatchDelay()
    delay.noteWaiting(1)
    await delay.wait(64, commitMs)
    t.ok(turns() >= 1, 'whoever comes in the same turn comes along')
    t.ok(turns() <= 3, `${turns()}`)
  })

for (const [commitMs, waitMs] of [
  [2, 2],
  [20, 3],
] as const)
  test(`after a commit of ${commitMs} ms others are waited for ${waitMs} ms at most`, async (t) => {
    const waits: unknown[] = []
    const original = globalThis.setTimeout
    const noting = ((...args: Parameters<typeof original>) => {
      waits.push(args[1])
      return original(...args)
    }) as typeof original
    globalThis.setTimeout = noting
    t.teardown(() => {
      globalThis.setTimeout = original
    })
    await new BatchDelay().wait(64, commitMs)
    t.strictSame(waits, [waitMs])
  })

test('a wait ends when all expected requests have arrived', async (t) => {
  const delay = new BatchDelay()
  delay.noteWaiting(1)
  const gathered = delay.wait(3, 1_000_000)
  await new Promise(setImmediate)
  delay.noteWaiting(2)
  delay.noteWaiting(3)
  await gathered
  t.pass('and not with the timer')
})
