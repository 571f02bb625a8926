// What `npm run test:slow` runs with TEST_LIMITS=full: the lengths, sizes and bounds of the promises. Otherwise what a
// test of a promise needs is smaller, and shows what happens, not how soon.
import type { Test } from 'tap'

export const isFull = process.env.TEST_LIMITS === 'full'

/** How many times a test of kills kills: `full` or `fast` unless TEST_ROUNDS says it. */
export function countRounds(full: number, fast: number): number {
  return Number(process.env.TEST_ROUNDS ?? (isFull ? full : fast))
}

/** Asserts that something came in the promised time: only in full, as shortened time-outs promise nothing. */
export function assertWithin(t: Test, tookMs: number, promisedMs: number, title = 'in time'): void {
  if (isFull) t.ok(tookMs <= promisedMs, `${title}: ${Math.round(tookMs)} of ${promisedMs} ms`)
  else t.comment(`${title}: ${Math.round(tookMs)} ms`)
}
