// The epochs of a log, in the manner of Kafka's leader epochs (KIP-101). A new one begins with the first batch after
// anything that could have cut the log. A position belongs to the last epoch that starts before it; two logs that name
// the same owner for a position hold the same plants up to there.
import { randomBytes } from 'node:crypto'

/** `epoch`: random; `start`: where the log ended when it began. */
export type Epoch = { epoch: string; start: number }

/** The latest epoch of the log: a subquery for both engines. */
export const latestEpoch = '(SELECT epoch FROM epochs ORDER BY number DESC LIMIT 1)'

/** The epoch that owns a position: a subquery for both engines. `position` is SQL. */
export function ownerOf(position: string): string {
  return `(SELECT epoch FROM epochs WHERE start < ${position} ORDER BY number DESC LIMIT 1)`
}

export class Epochs {
  readonly #epochs: readonly Epoch[]

  /** In the order in which they began. */
  constructor(epochs: readonly Epoch[]) {
    this.#epochs = epochs
  }

  /** The one that began last; empty when there is none. */
  get latest(): string {
    return this.#epochs.at(-1)?.epoch ?? ''
  }

  /** The epoch that owns a position; empty for position 0, which holds nothing. */
  owner(position: number): string {
    for (let i = this.#epochs.length - 1; i >= 0; i--) {
      const { epoch, start } = this.#epochs[i] as Epoch
      if (start < position) return epoch
    }
    return ''
  }
}

/** A name for a new epoch: 64 random bits. */
export function makeEpoch(): string {
  return randomBytes(8).toString('base64url')
}
