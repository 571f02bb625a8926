// Rate limits by the generic cell rate algorithm (ITU-T I.371): one number per key, in memory that the threads of a
// process share, so that they count as one.
import { randomBytes } from 'node:crypto'
import type { Rate } from '../../config/values.ts'
import { ratedKeys } from '../../limits.ts'
import { monotonicMs } from '../../runtime/clock.ts'

/** `remaining`: how many more are allowed at once; `nextMs`: after how long it is one more than that. */
export type Verdict = { readonly allowed: boolean; readonly remaining: number; readonly nextMs: number }

/** `memory`: see `makeRateMemory`. `now`: a monotonic clock that all threads share. */
export type GcraOptions = { memory?: SharedArrayBuffer; now?: () => number }

/** Floating-point sums of intervals must not refuse who keeps to the rate exactly: this part of an interval is free. */
const slack = 1e-4
/** Cells tried for a key. */
const probes = 16
/** A cell is a key (0: none yet) and when all that was allowed to it is used up at the even rate, 8 bytes each. */
const cellWords = 2
/** The number that keys are hashed with is in front: nobody can tell which ones meet in one cell. */
const headWords = 1

/** Memory for so many keys, a power of two. When full, the key that recovers soonest is evicted. */
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
  /** A time as its bits, since no other number can be exchanged atomically. */
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

  /** Counts one for `key`, unless it is one too many: that costs nothing. */
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
      // Otherwise another thread has counted in the same moment, or has given the cell to another key.
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
   * Has a cell be that of a key, unless another thread changes it in the same moment: whoever looks again sees who has
   * it. What the former key used up goes first, so that nothing is taken off what is counted for the new one.
   */
  #claim(place: number, key: bigint, now: number): void {
    const former = Atomics.load(this.#words, place)
    const used = Atomics.load(this.#words, place + 1)
    if (this.#toTime(used) > now && Atomics.compareExchange(this.#words, place + 1, used, 0n) !== used) return
    Atomics.compareExchange(this.#words, place, former, key)
  }

  /** 64 bits that are never 0: two rounds of FNV-1a, from two beginnings. */
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
