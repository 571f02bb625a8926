// Rate limits by the generic cell rate algorithm (ITU-T I.371): one number per key, in memory that the threads of a
// process share, so that they count as one.
import { randomBytes } from 'node:crypto'
import type { Rate } from '../../config/values.ts'
import { ratedKeys } from '../../limits.ts'
import { monotonicMs } from '../../runtime/clock.ts'

/** `remaining`: requests allowed right now; `nextMs`: milliseconds until one more is. */
export type Verdict = { readonly allowed: boolean; readonly remaining: number; readonly nextMs: number }

/** Counts one request for a key. One that is refused is not counted. */
export type Take = (key: string) => Verdict

/** `memory`: see `makeRateMemory`. `now`: a monotonic clock that all threads share. */
export type GcraOptions = { memory?: SharedArrayBuffer | undefined; now?: () => number }

/** Tolerance, as a part of an interval, so that rounding refuses no client that keeps exactly to the rate. */
const slack = 1e-4
/** Cells tried for a key. */
const probes = 16
/** The memory begins with a lock and the seed of the hash, 4 bytes each. Behind them are the cells. */
const [lock, seed] = [0, 1]
const headBytes = 8
/** A cell: the key (0: free) and its theoretical arrival time. */
const cellNumbers = 2
/**
 * A thread waits for the lock at most as many times, a millisecond each. The lock is held for a microsecond, or for as
 * long as its thread gets no core. It is taken away only from a thread that has ended: then the process ends, too.
 */
const tries = 1000

/** Makes memory for `keys` keys. When all cells tried for one are taken, the key that recovers soonest is evicted. */
export function makeRateMemory(keys = ratedKeys): SharedArrayBuffer {
  const cellBytes = cellNumbers * Float64Array.BYTES_PER_ELEMENT
  const memory = new SharedArrayBuffer(headBytes + keys * cellBytes)
  // Clients cannot choose keys that collide.
  new Int32Array(memory)[seed] = randomBytes(4).readInt32LE()
  return memory
}

/** Makes a count that allows `count` at once, and from then on `count` in each `perMs`, evenly. */
export function makeGcra(
  { count, perMs }: Rate,
  { memory = makeRateMemory(), now = monotonicMs }: GcraOptions = {},
): Take {
  const intervalMs = perMs / count
  const head = new Int32Array(memory, 0, headBytes / Int32Array.BYTES_PER_ELEMENT)
  const cells = new Float64Array(memory, headBytes)

  return (key) => {
    const nowMs = now()
    const hash = hashOf(key, head[seed] as number)
    for (let n = 0; n < tries && Atomics.compareExchange(head, lock, 0, 1) !== 0; n++)
      Atomics.wait(head, lock, 1, 1)
    const time = findCell(cells, hash) + 1
    const formerMs = Math.max(cells[time] as number, nowMs)
    const usedUpMs = formerMs + intervalMs
    const allowed = usedUpMs - nowMs <= perMs + intervalMs * slack
    if (allowed) cells[time] = usedUpMs
    Atomics.store(head, lock, 0)
    Atomics.notify(head, lock)
    const left = (perMs - ((allowed ? usedUpMs : formerMs) - nowMs)) / intervalMs
    const remaining = Math.max(0, Math.floor(left + slack))
    return { allowed, remaining, nextMs: (remaining + 1 - left) * intervalMs }
  }
}

/** Finds the cell of a key. A key that has none gets a free one, or that of the key that recovers soonest. */
function findCell(cells: Float64Array, key: number): number {
  let best = -1
  let bestMs = Number.POSITIVE_INFINITY
  for (let probe = 0; probe < Math.min(probes, cells.length / cellNumbers); probe++) {
    const place = ((key + probe) * cellNumbers) % cells.length
    if (cells[place] === key) return place
    const usedUpMs = cells[place + 1] as number
    if (usedUpMs < bestMs) [best, bestMs] = [place, usedUpMs]
    if (cells[place] === 0) break
  }
  cells[best] = key
  cells[best + 1] = 0
  return best
}

/** A hash of 48 bits that is never 0: FNV-1a twice, with two seeds. */
function hashOf(text: string, seed: number): number {
  let high = seed
  let low = ~seed
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    high = Math.imul(high ^ code, 0x01000193)
    low = Math.imul(low ^ code, 0x01000193)
  }
  return (high >>> 0) * 2 ** 16 + (low >>> 16) + 1
}
