// With TEST_LIMITS=full, as in `npm run test:slow`, tests use the promised sizes and times. Otherwise sizes and times
// are smaller, and tests check the behaviour, but not the promised times.
import { randomInt } from 'node:crypto'
import type { Test } from 'tap'

export const isFull = process.env.TEST_LIMITS === 'full'

/** The number of rounds in a test: TEST_ROUNDS, or else `full` or `fast`. */
export function countRounds(full: number, fast: number): number {
  return Number(process.env.TEST_ROUNDS ?? (isFull ? full : fast))
}

/** Asserts that something took at most the promised time; only with full limits. */
export function assertWithin(t: Test, tookMs: number, promisedMs: number, title = 'in time'): void {
  if (isFull) t.ok(tookMs <= promisedMs, `${title}: ${Math.round(tookMs)} of ${promisedMs} ms`)
  else t.comment(`${title}: ${Math.round(tookMs)} ms`)
}

process.env.TEST_SEED ??= String(randomInt(2 ** 31))
export const seed = Number(process.env.TEST_SEED)

/** Prints how to repeat a run. */
export function tellSeed(t: Pick<Test, 'comment'>): void {
  t.comment(`TEST_SEED=${seed} repeats this`)
}

/** Makes a generator of numbers from 0 to below 1, determined by the seed (mulberry32). */
export function makeRandom(): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
