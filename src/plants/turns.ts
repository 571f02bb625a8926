// Work for many requests at once, a little per turn of the event loop: answering thousands of them must not keep
// everyone else waiting.

/** How much of one turn of the event loop such work may take, all together. */
const turnMs = 10

export class Turns {
  readonly #report: (error: unknown) => void
  #later: (() => void)[] = []
  #underWay = false
  #startMs = 0

  /** `report` is told what a piece of work throws; the others are done all the same. */
  constructor(report: (error: unknown) => void) {
    this.#report = report
  }

  /** Does `work` at once when this turn has time left, otherwise in a later one. The order is kept. */
  run(work: () => void): void {
    if (!this.#underWay) this.#begin()
    if (this.#later.length > 0 || performance.now() - this.#startMs > turnMs) this.#later.push(work)
    else this.#do(work)
  }

  #begin(): void {
    this.#underWay = true
    this.#startMs = performance.now()
    setImmediate(this.#next)
  }

  readonly #next = (): void => {
    this.#underWay = false
    if (this.#later.length === 0) return
    const works = this.#later
    this.#begin()
    let done = 0
    do this.#do(works[done++] as () => void)
    while (done < works.length && performance.now() - this.#startMs <= turnMs)
    works.splice(0, done)
  }

  #do(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#report(error)
    }
  }
}
