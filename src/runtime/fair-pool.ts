// Fair queues and pools: owners take turns, so that one request does not wait behind another owner's thousand.

/** A queue per owner; owners take turns. */
export class FairQueue<T> {
  /** Entries by owner; the owner whose turn is next comes first. */
  readonly #lines = new Map<string, T[]>()

  get isEmpty(): boolean {
    return this.#lines.size === 0
  }

  /** Number of an owner's waiting entries. */
  count(owner: string): number {
    return this.#lines.get(owner)?.length ?? 0
  }

  put(owner: string, one: T): void {
    const line = this.#lines.get(owner)
    if (line) line.push(one)
    else this.#lines.set(owner, [one])
  }

  /** Takes the first entry of the owner whose turn it is, and moves that owner to the end; undefined when empty. */
  take(): T | undefined {
    const [first] = this.#lines
    if (first === undefined) return undefined
    const [owner, line] = first
    const one = line.shift()
    this.#lines.delete(owner)
    if (line.length > 0) this.#lines.set(owner, line)
    return one
  }
}

/** `slots`: pieces of work at a time; `line`: the most that may wait per owner, and the error for one more. */
export type FairPoolOptions = { slots: number; line?: { most: number; refuse: () => Error } }

export class FairPool {
  readonly #waiting = new FairQueue<() => void>()
  readonly #line: FairPoolOptions['line']
  #free: number

  constructor({ slots, line }: FairPoolOptions) {
    this.#free = slots
    this.#line = line
  }

  /** Number of an owner's waiting entries. */
  waiting(owner: string): number {
    return this.#waiting.count(owner)
  }

  /** Runs `work` when its turn comes. Rejects when too much of its owner waits already. */
  async run<T>(owner: string, work: () => T | Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else if (this.#line && this.waiting(owner) >= this.#line.most) throw this.#line.refuse()
    else await new Promise<void>((go) => this.#waiting.put(owner, go))
    try {
      return await work()
    } finally {
      const next = this.#waiting.take()
      if (next) next()
      else this.#free++
    }
  }
}
