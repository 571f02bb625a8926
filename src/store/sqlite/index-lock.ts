// Who may do with the wal-index what nobody else may do meanwhile: the writer thread, whose transaction it is, or a thread
// that looks at the files and makes them whole again. It is a word of shared memory, since no thread waits for the event
// loop of another one.

const free = 0
const inTransaction = 1
/** Whoever looks has a number of its own: what is held by a thread that has ended can be told. */
const firstLooker = 2
/** A look takes microseconds; one that takes longer is of a thread that hangs, or has ended. */
const waitMs = 100

export class IndexLock {
  /** For the other threads, which make locks of the same memory. */
  readonly memory: SharedArrayBuffer
  readonly #looker: number
  readonly #state: Int32Array
  #lookers = firstLooker

  /** `looker`: what `addLooker` of the main thread gave. */
  constructor(memory = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT), looker = firstLooker) {
    this.memory = memory
    this.#looker = looker
    this.#state = new Int32Array(memory)
  }

  /** The writer's transaction begins; while somebody looks it waits. */
  begin(): void {
    while (!this.#take(inTransaction)) this.#waitFor(this.#holder)
  }

  /** The writer's transaction is over, or its thread has ended. */
  end(): void {
    this.#free(inTransaction)
  }

  /** A number for one more thread that looks. */
  addLooker(): number {
    this.#lookers++
    return this.#lookers
  }

  /** The thread with this number has ended, be it in the middle of a look. */
  removeLooker(looker: number): void {
    this.#free(looker)
  }

  /** Does `look` when nobody else is at work for long; otherwise it is false. */
  tryLook(look: () => void): boolean {
    while (!this.#take(this.#looker)) {
      const holder = this.#holder
      if (holder === inTransaction || !this.#waitFor(holder)) return false
    }
    try {
      look()
    } finally {
      this.#free(this.#looker)
    }
    return true
  }

  get #holder(): number {
    return Atomics.load(this.#state, 0)
  }

  /** False when it takes too long. */
  #waitFor(holder: number): boolean {
    return holder === free || Atomics.wait(this.#state, 0, holder, waitMs) !== 'timed-out'
  }

  #free(holder: number): void {
    Atomics.compareExchange(this.#state, 0, holder, free)
    Atomics.notify(this.#state, 0)
  }

  #take(state: number): boolean {
    return Atomics.compareExchange(this.#state, 0, free, state) === free
  }
}
