// One look at the head of the log for all requests that wait at one moment: they share its cost, and their answers
// leave together.
import type { PlantLog } from '../store/store.ts'

type Waiter<T> = { answer: (head: number, waiting: T) => void; fail: (error: unknown, waiting: T) => void }

export class SharedHead<T> {
  readonly #log: PlantLog
  readonly #waiter: Waiter<T>
  #waiting: T[] = []
  #looking = false

  /** `answer` is told the head, and `fail` of an error, for everything that waits. Neither throws. */
  constructor(log: PlantLog, waiter: Waiter<T>) {
    this.#log = log
    this.#waiter = waiter
  }

  /** Has `waiting` answered with a head that was read after this call: it counts every plant acknowledged before. */
  wait(waiting: T): void {
    this.#waiting.push(waiting)
    if (this.#looking) return
    this.#looking = true
    setImmediate(this.#look)
  }

  /** Whoever comes while a look is under way came too late for it, and waits for the next. */
  readonly #look = async (): Promise<void> => {
    const waiting = this.#waiting
    this.#waiting = []
    try {
      const head = await this.#log.head()
      for (const one of waiting) this.#waiter.answer(head, one)
    } catch (error) {
      for (const one of waiting) this.#waiter.fail(error, one)
    }
    this.#looking = this.#waiting.length > 0
    if (this.#looking) setImmediate(this.#look)
  }
}
