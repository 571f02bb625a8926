// The epochs of a log, like Kafka's leader epochs (KIP-101). A new one begins with the first batch after any event that
// could have truncated the log. The last epoch that starts before a position owns it; two logs in which the same epoch
// owns a position hold the same plants up to there.
import { randomBytes } from 'node:crypto'

/** `epoch`: random; `start`: head of the log when it began. */
export type Epoch = { epoch: string; start: number }

/** Subquery for the latest epoch. */
export const latestEpoch = '(SELECT epoch FROM epochs ORDER BY number DESC LIMIT 1)'

/** Subquery for the epoch that owns a position, given as SQL. */
export function ownerOf(position: string): string {
  return `(SELECT epoch FROM epochs WHERE start < ${position} ORDER BY number DESC LIMIT 1)`
}

export class Epochs {
  readonly #epochs: readonly Epoch[]

  /** `epochs`: in the order in which they began. */
  constructor(epochs: readonly Epoch[]) {
    this.#epochs = epochs
  }

  /** The latest epoch; empty when there is none. */
  get latest(): string {
    return this.#epochs.at(-1)?.epoch ?? ''
  }

  /** The position up to which a log of these epochs and one of the `others` hold the same plants, as far as both go. */
  agreesUntil(others: Epochs): number {
    if (others === this) return Number.POSITIVE_INFINITY
    const [mine, theirs] = [this.#epochs, others.#epochs]
    const parting = mine.findIndex(({ epoch }, n) => epoch !== theirs[n]?.epoch)
    const at = parting === -1 ? mine.length : parting
    return Math.min(...[mine[at], theirs[at]].map((next) => next?.start ?? Number.POSITIVE_INFINITY))
  }

  /** The epoch that owns a position; empty for position 0. */
  owner(position: number): string {
    return this.#epochs.findLast(({ start }) => start < position)?.epoch ?? ''
  }
}

/** Makes the name of a new epoch: 64 random bits. */
export function makeEpoch(): string {
  return randomBytes(8).toString('base64url')
}
