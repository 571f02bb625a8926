// What waits, in a line for each owner. The owners come one after the other: whoever has little does not wait behind one
// who has much.

export class OwnerLines {
  /** Whose turn comes next is first. */
  readonly #lines = new Map<string, (() => void)[]>()

  /** How many owners have something that waits. */
  get size(): number {
    return this.#lines.size
  }

  /** How much of an owner waits. */
  count(owner: string): number {
    return this.#lines.get(owner)?.length ?? 0
  }

  put(owner: string, work: () => void): void {
    const line = this.#lines.get(owner)
    if (line) line.push(work)
    else this.#lines.set(owner, [work])
  }

  /** The first in line of the owner whose turn it is, who goes to the end; undefined when nothing waits. */
  take(): (() => void) | undefined {
    const [first] = this.#lines
    if (first === undefined) return undefined
    const [owner, line] = first
    const work = line.shift()
    this.#lines.delete(owner)
    if (line.length > 0) this.#lines.set(owner, line)
    return work
  }
}
