// Rate limits by the generic cell rate algorithm (ITU-T I.371): one number per key, in memory that the threads of a
// process share, so that they count as one.
import { randomBytes } from 'node:crypto'
import type { Rate } from '../../config/values.ts'
import { ratedKeys } from '../../limits.ts'
import { monotonicMs } from '../../runtime/clock.ts'

/** `remaining`: requests allowed right now; `nextMs`: milliseconds until one more is. */
export type Verdict = { readonly allowed: boolean; readonly remaining: number; readonly nextMs: number }

/** `memory`: see `makeRateMemory`. `now`: a monotonic clock that all threads share. */
export type GcraOptions = { memory?: SharedArrayBuffer; now?: () => number }

/** Tolerance, as a part of an interval, so that rounding refuses no client that keeps exactly to the rate. */
const slack = 1e-4
/** Cells tried for a key. */
const probes = 16
/** A cell: the key (0: free) and its theoretical arrival time, 8 bytes each. */
const cellWords = 2
/** The seed of the hash comes first. It is random, so clients cannot choose keys that collide. */
const headWords = 1

/** Makes memory for `keys` keys. When all cells tried for one are taken, the key that recovers soonest is evicted. */
export function makeRateMemory(keys = ratedKeys): SharedArrayBuffer {
  const words = headWords + keys * cellWords
  const memory = new SharedArrayBuffer(words * BigInt64Array.BYTES_PER_ELEMENT)
  new BigInt64Array(memory)[0] = randomBytes(8).readBigInt64LE()
  return memory
}

export class Gcra {
  readonly #intervalMs: number
  readonly #windowMs: number
  readonly #now: () => number
  readonly #words: BigInt64Array
  readonly #keys: number
  readonly #seed: number
  /** Reads a time as bits: only integers can be exchanged atomically. */
  readonly #time = new Float64Array(1)
  readonly #bits = new BigInt64Array(this.#time.buffer)

  /** Allows `count` at once, and from then on `count` in each `perMs`, evenly. */
  constructor({ count, perMs }: Rate, { memory = makeRateMemory(), now = monotonicMs }: GcraOptions = {}) {
    this.#intervalMs = perMs / count
    this.#windowMs = perMs
    this.#now = now
    this.#words = new BigInt64Array(memory)
    this.#keys = (this.#words.length - headWords) / cellWords
    this.#seed = Number(BigInt.asIntN(32, this.#words[0] as bigint))
  }

  /** Counts one request for `key`. One that is refused is not counted. */
  take(key: string): Verdict {
    const now = this.#now()
    const hash = this.#hash(key)
    for (;;) {
      const place = this.#find(hash, now) + 1
      const former = Atomics.load(this.#words, place)
      const formerMs = Math.max(this.#toTime(former), now)
      const usedUpMs = formerMs + this.#intervalMs
      const allowed = usedUpMs - now <= this.#windowMs + this.#intervalMs * slack
      if (!allowed) return this.#describe(allowed, formerMs - now)
      const exchanged = Atomics.compareExchange(this.#words, place, former, this.#toBits(usedUpMs))
      // Otherwise another thread counted at the same moment or gave the cell to another key: look again.
      if (exchanged === former && Atomics.load(this.#words, place - 1) === hash)
        return this.#describe(allowed, usedUpMs - now)
    }
  }

  #describe(allowed: boolean, usedMs: number): Verdict {
    const left = (this.#windowMs - usedMs) / this.#intervalMs
    const remaining = Math.max(0, Math.floor(left + slack))
    return { allowed, remaining, nextMs: (remaining + 1 - left) * this.#intervalMs }
  }

  /** Finds the cell of a key: its own, a free one, or that of the key that recovers soonest. */
  #find(key: bigint, now: number): number {
    const first = Number(BigInt.asUintN(32, key >> 32n))
    for (;;) {
      let best = -1
      let bestMs = Number.POSITIVE_INFINITY
      for (let probe = 0; probe < Math.min(probes, this.#keys); probe++) {
        const place = headWords + ((first + probe) % this.#keys) * cellWords
        const found = Atomics.load(this.#words, place)
        if (found === key) return place
        const usedUpMs = found === 0n ? 0 : this.#toTime(Atomics.load(this.#words, place + 1))
        if (usedUpMs < bestMs) [best, bestMs] = [place, usedUpMs]
        if (found === 0n) break
      }
      this.#claim(best, key, now)
    }
  }

  /**
   * Tries to give a cell to a key; the caller looks again, as another thread may have been faster. The time is reset
   * before the key is set, so that no request counted for the new key is lost.
   */
  #claim(place: number, key: bigint, now: number): void {
    const former = Atomics.load(this.#words, place)
    const used = Atomics.load(this.#words, place + 1)
    if (this.#toTime(used) > now && Atomics.compareExchange(this.#words, place + 1, used, 0n) !== used) return
    Atomics.compareExchange(this.#words, place, former, key)
  }

  /** A hash of 64 bits that is never 0: FNV-1a twice, with two seeds. */
  #hash(text: string): bigint {
    let high = this.#seed
    let low = ~this.#seed
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      high = Math.imul(high ^ code, 0x01000193)
      low = Math.imul(low ^ code, 0x01000193)
    }
    return (BigInt(high) << 32n) | BigInt((low | 1) >>> 0)
  }

  #toTime(bits: bigint): number {
    this.#bits[0] = bits
    return this.#time[0] as number
  }

  #toBits(timeMs: number): bigint {
    this.#time[0] = timeMs
    return this.#bits[0] as bigint
  }
}
