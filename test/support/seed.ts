// What random tests begin with: `TEST_SEED=…` repeats the cases of a run. Threads that are started take it over.
import { randomInt } from 'node:crypto'
import type { Test } from 'tap'

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
