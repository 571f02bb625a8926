// How often something may be done: the generic cell rate algorithm (ITU-T I.371). What it remembers of each key is one
// number, and only for as long as that matters.
import type { Rate } from '../config/values.ts'

/** `remaining`: how many more are allowed at once; `nextMs`: after how long it is one more than that. */
export type Verdict = { readonly allowed: boolean; readonly remaining: number; readonly nextMs: number }

/** `maxKeys`: how many keys are remembered; of more, the one that came first starts anew. `now`: a monotonic clock. */
export type GcraOptions = { maxKeys?: number; now?: () => number }

/** When all that was allowed to a key is used up at the even rate. */
type Cell = { usedUpMs: number }

/** Floating-point sums of intervals must not refuse who keeps to the rate exactly: this part of an interval is free. */
const slack = 1e-4
/** Fewer keys than these are not looked through for what can be forgotten. */
const fewKeys = 1000

export class Gcra {
  readonly #intervalMs: number
  readonly #windowMs: number
  readonly #maxKeys: number
  readonly #now: () => number
  readonly #cells = new Map<string, Cell>()
  #sweepSize = fewKeys

  /** Allows `count` at once, and from then on `count` in each `perMs`, evenly. */
  constructor(
    { count, perMs }: Rate,
    { maxKeys = Number.POSITIVE_INFINITY, now = () => performance.now() }: GcraOptions = {},
  ) {
    this.#intervalMs = perMs / count
    this.#windowMs = perMs
    this.#maxKeys = maxKeys
    this.#now = now
  }

  /** How many keys are remembered. */
  get size(): number {
    return this.#cells.size
  }

  /** Counts one for `key`, unless it is one too many: that costs nothing. */
  take(key: string): Verdict {
    const now = this.#now()
    const cell = this.#cells.get(key) ?? this.#add(key, now)
    const usedUpMs = Math.max(cell.usedUpMs, now) + this.#intervalMs
    const allowed = usedUpMs - now <= this.#windowMs + this.#intervalMs * slack
    if (allowed) cell.usedUpMs = usedUpMs
    const left = (this.#windowMs + now - cell.usedUpMs) / this.#intervalMs
    const remaining = Math.max(0, Math.floor(left + slack))
    return { allowed, remaining, nextMs: (remaining + 1 - left) * this.#intervalMs }
  }

  #add(key: string, now: number): Cell {
    if (this.#cells.size >= this.#sweepSize) this.#sweep(now)
    if (this.#cells.size >= this.#maxKeys) this.#cells.delete(this.#cells.keys().next().value as string)
    const cell = { usedUpMs: now }
    this.#cells.set(key, cell)
    return cell
  }

  /** Forgets what makes no difference any more. That all are looked at again only when they have doubled bounds the cost. */
  #sweep(now: number): void {
    for (const [key, { usedUpMs }] of this.#cells) if (usedUpMs <= now) this.#cells.delete(key)
    this.#sweepSize = Math.max(fewKeys, this.#cells.size * 2)
  }
}
