// Reads of pages from a store that takes its time: a few at once, and the owners of those that wait one after the other,
// so that whoever asks for one page does not wait behind one who asks for a thousand.
import { maxWaitingReads, readConnections } from '../limits.ts'
import { StoreUnavailable } from '../store/store.ts'

export class ReadTurns {
  /** What waits, for each owner. Whose turn comes next is first. */
  readonly #lines = new Map<string, (() => void)[]>()
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
    const line = this.#lines.get(owner) ?? []
    if (line.length >= maxWaitingReads) throw new StoreUnavailable('unread', 'too many pages are to be read')
    this.#lines.set(owner, line)
    return new Promise((go) => line.push(go))
  }

  #pass(): void {
    const [next] = this.#lines
    if (next === undefined) {
      this.#free++
      return
    }
    const [owner, line] = next
    const go = line.shift()
    this.#lines.delete(owner)
    if (line.length > 0) this.#lines.set(owner, line)
    go?.()
  }
}
