// What `npm run test:slow` runs with TEST_LIMITS=full: the lengths, sizes and bounds of the promises. Otherwise what a
// test of a promise needs is smaller, and shows what happens, not how soon.
import { randomInt } from 'node:crypto'
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

process.env.TEST_SEED ??= String(randomInt(2 ** 31))
export const seed = Number(process.env.TEST_SEED)

/** Says how a run is repeated. */
export function tellSeed(t: Pick<Test, 'comment'>): void {
  t.comment(`TEST_SEED=${seed} repeats this`)
}

/** A source of numbers from 0 to below 1, always the same ones for a seed (mulberry32). */
export function makeRandom(): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
