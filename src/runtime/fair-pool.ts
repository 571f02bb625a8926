// A pool whose owners take turns, so that one request does not wait behind another owner's thousand.

/** `slots`: pieces of work at a time; `line`: the most that may wait per owner, and the error for one more. */
export type FairPoolOptions = { slots: number; line?: { most: number; refuse: () => Error } }

export class FairPool {
  /** Those who wait, by owner; the owner whose turn is next comes first. */
  readonly #waiting = new Map<string, (() => void)[]>()
  readonly #line: FairPoolOptions['line']
  #free: number

  constructor({ slots, line }: FairPoolOptions) {
    this.#free = slots
    this.#line = line
  }

  /** Number of an owner's waiting entries. */
  waiting(owner: string): number {
    return this.#waiting.get(owner)?.length ?? 0
  }

  /** Runs `work` when its turn comes. Rejects when too much of its owner waits already. */
  async run<T>(owner: string, work: () => T | Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else if (this.#line && this.waiting(owner) >= this.#line.most) throw this.#line.refuse()
    else await new Promise<void>((go) => this.#enqueue(owner, go))
    try {
      return await work()
    } finally {
      const next = this.#dequeue()
      if (next) next()
      else this.#free++
    }
  }

  #enqueue(owner: string, go: () => void): void {
    const line = this.#waiting.get(owner)
    if (line) line.push(go)
    else this.#waiting.set(owner, [go])
  }

  /** Takes the first of the owner whose turn it is, and moves that owner to the end; undefined when nobody waits. */
  #dequeue(): (() => void) | undefined {
    const [first] = this.#waiting
    if (first === undefined) return undefined
    const [owner, line] = first
    const go = line.shift()
    this.#waiting.delete(owner)
    if (line.length > 0) this.#waiting.set(owner, line)
    return go
  }
}
