// Who may do with the wal-index what nobody else may do meanwhile: the writer thread, whose transaction it is, or a thread
// that looks at the files and makes them whole again. It is a word of shared memory, since no thread waits for another one's event loop.

const free = 0
const inTransaction = 1
const inLook = 2
/** A look takes microseconds. Who waits for longer tries again. */
const waitMs = 100

export class IndexLock {
  /** For the other threads, which make locks of the same memory. */
  readonly memory: SharedArrayBuffer
  readonly #state: Int32Array

  constructor(memory = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory
    this.#state = new Int32Array(memory)
  }

  /** The writer's transaction begins; while somebody looks it waits. */
  begin(): void {
    /* c8 ignore next: somebody looks in the same moment */
    while (!this.#take(inTransaction)) Atomics.wait(this.#state, 0, inLook, waitMs)
  }

  /** The writer's transaction is over, or its thread has ended. */
  end(): void {
    Atomics.compareExchange(this.#state, 0, inTransaction, free)
  }

  /** Does `look` when no transaction is under way; otherwise it is false. */
  tryLook(look: () => void): boolean {
    while (!this.#take(inLook)) {
      if (Atomics.load(this.#state, 0) === inTransaction) return false
      /* c8 ignore next 2: another thread looks in the same moment */
      Atomics.wait(this.#state, 0, inLook, waitMs)
    }
    try {
      look()
    } finally {
      Atomics.store(this.#state, 0, free)
      Atomics.notify(this.#state, 0)
    }
    return true
  }

  #take(state: number): boolean {
    return Atomics.compareExchange(this.#state, 0, free, state) === free
  }
}
