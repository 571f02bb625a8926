// Reads the head of the log once for all lists that wait at one moment.
import type { Head, PlantLog } from '../store/engine.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { inTime } from '../store/in-time.ts'

/** The most lists that may wait for one look at the head. */
const maxWaiting = 10_000

type Look = { count: number; positions: Set<number>; head: Promise<Head> }

export class SharedHead {
  readonly #log: PlantLog
  /** The next look, which has not begun yet: more lists can still join it. */
  #next: Look | undefined
  /** Ends with the look in progress. */
  #current: Promise<unknown> | undefined

  constructor(log: PlantLog) {
    this.#log = log
  }

  /**
   * Resolves to the head and the marks of `positions`, read after this call, so that the head includes every plant
   * acknowledged before. Throws or rejects with StoreUnavailable.
   */
  read(positions: readonly number[]): Promise<Head> {
    this.#next ??= this.#prepare()
    if (this.#next.count++ >= maxWaiting)
      throw new StoreUnavailable('overloaded', 'too many lists wait for the head of the log')
    for (const position of positions) this.#next.positions.add(position)
    return this.#next.head
  }

  #prepare(): Look {
    const positions = new Set<number>()
    const head = this.#current ? inTime(this.#look(positions)) : this.#look(positions)
    return { count: 0, positions, head }
  }

  /**
   * A look that began before a request arrived may be stale for it, so the next one begins when the current one has
   * ended.
   */
  async #look(positions: Set<number>): Promise<Head> {
    // Requests that were read in this turn of the event loop share the look.
    await (this.#current ?? new Promise(setImmediate))
    this.#next = undefined
    const head = this.#log.head([...positions])
    if (!(head instanceof Promise)) return head
    const end = () => {
      this.#current = undefined
    }
    this.#current = head.then(end, end)
    return inTime(head)
  }
}
