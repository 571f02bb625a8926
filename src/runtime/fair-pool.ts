// Who may have what there is little of: owners in turn, so that whoever asks for one thing does not wait behind one who
// asks for a thousand.

/** What waits, in a line for each owner. */
export class FairQueue<T> {
  /** Whose turn comes next is first. */
  readonly #lines = new Map<string, T[]>()

  /** How many owners have something that waits. */
  get size(): number {
    return this.#lines.size
  }

  /** How much of an owner waits. */
  count(owner: string): number {
    return this.#lines.get(owner)?.length ?? 0
  }

  put(owner: string, one: T): void {
    const line = this.#lines.get(owner)
    if (line) line.push(one)
    else this.#lines.set(owner, [one])
  }

  /** The first in line of the owner whose turn it is, who goes to the end; undefined when nothing waits. */
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

/** `slots`: how much is done at a time; `line`: how much of one owner may wait, and the error of what is one too many. */
export type FairPoolOptions = { slots: number; line?: { most: number; refuse: () => Error } }

export class FairPool {
  readonly #waiting = new FairQueue<() => void>()
  readonly #line: FairPoolOptions['line']
  #free: number

  constructor({ slots, line }: FairPoolOptions) {
    this.#free = slots
    this.#line = line
  }

  /** How much of an owner waits. */
  waiting(owner: string): number {
    return this.#waiting.count(owner)
  }

  /** Does `work` when its turn has come. Rejects when too much of its owner waits already. */
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
