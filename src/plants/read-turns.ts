// Reads of pages from a store that takes its time: a few at once, and the owners of those that wait one after the other,
// so that whoever asks for one page does not wait behind one who asks for a thousand.
import { maxWaitingReads, readConnections } from '../limits.ts'
import { StoreUnavailable } from '../store/store.ts'
import { OwnerLines } from './owner-lines.ts'

export class ReadTurns {
  readonly #waiting = new OwnerLines()
  #free = readConnections

  /** Does `read` when its turn has come. Rejects with StoreUnavailable when too much of its owner waits already. */
  async run<T>(owner: string, read: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await this.#wait(owner)
    try {
      return await read()
    } finally {
      this.#pass()
    }
  }

  #wait(owner: string): Promise<void> {
    if (this.#waiting.count(owner) >= maxWaitingReads)
      throw new StoreUnavailable('overloaded', 'too many pages are to be read')
    return new Promise((go) => this.#waiting.put(owner, go))
  }

  #pass(): void {
    const next = this.#waiting.take()
    if (next) next()
    else this.#free++
  }
}
