// Records the guarantees given to clients while a schedule is explored.
import type { Entry, Outcome } from '../../src/store/engine.ts'
import { type FailedOutcome, StoreUnavailable } from '../../src/store/errors.ts'
import type { Fault, MemoryLog } from '../support/memory-log.ts'
import type { Action } from './race-actions.ts'

export type Adding = {
  entry: Entry
  late: boolean
  gone: boolean
  told: (Outcome | FailedOutcome)[]
  done: () => void
}
export type Listing = {
  ask: Extract<Action, { kind: 'list' }>
  gone: boolean
  cuts: number
  done: (text?: string) => void
}

/** Records every guarantee to a client, and every violation. */
export class Oracle {
  readonly broken: string[] = []
  readonly #log: MemoryLog
  readonly #acknowledged = new Set<Entry>()
  readonly #cut = new Set<Entry>()
  readonly #names = new Map<string, string>()
  readonly #adding: Adding[] = []
  faults = 0
  /** The number of times the log lost plants. */
  cuts = 0
  #named = 0

  constructor(log: MemoryLog) {
    this.#log = log
  }

  nextName(): string {
    return `"plant number ${++this.#named}"`
  }

  /** Makes plants with the same id equal or different. */
  nextVariant(): number {
    return ++this.#named % 2
  }

  break(fault: Fault): void {
    this.faults++
    this.#log.faults.push(fault)
  }

  object(what: string): void {
    this.broken.push(what)
  }

  asked(adding: Adding): void {
    this.#adding.push(adding)
  }

  told(adding: Adding, what: Outcome | FailedOutcome): void {
    adding.told.push(what)
    const { entry } = adding
    const same = this.#log.entries.filter(({ id }) => id !== undefined && id === entry.id)
    if (what === 'added') {
      if (this.#log.entries.includes(entry)) this.#acknowledged.add(entry)
      else if (!this.#cut.has(entry)) this.object('an acknowledged plant is missing')
    } else if (what === 'replayed' || what === 'conflict') {
      if (this.#cut.size === 0 && (same.length === 0 || same[0] === entry))
        this.object(`${what}, but the id was unused`)
      if (this.#cut.size === 0 && (same[0]?.item === entry.item) !== (what === 'replayed'))
        this.object(`${what}, but the stored plant requires the other outcome`)
    } else if (this.faults === 0 && !adding.late && !adding.gone) this.object(`${what} without a fault`)
    adding.done()
  }

  cut(position: number): void {
    this.faults++
    this.cuts++
    for (const entry of this.#log.cut(position)) {
      this.#cut.add(entry)
      this.#acknowledged.delete(entry)
    }
  }

  /** The plants that a list requested now must contain. */
  promised(): Entry[] {
    return [...this.#acknowledged]
  }

  listed(name: string, text: string, listing: Listing, expected: string): void {
    if (text !== expected) this.object(`${name} differs from the log`)
    const known = this.#names.get(name)
    if (known !== undefined && known !== text) this.object(`${name} names two lists`)
    this.#names.set(name, text)
    listing.done(text)
  }

  failed(error: unknown, listing: Listing): void {
    if (!(error instanceof StoreUnavailable) || this.cuts === listing.cuts)
      this.object(`a list failed: ${error}`)
    listing.done()
  }

  checkFresh(text: string | undefined, promised: Entry[]): void {
    if (text === undefined) return
    for (const entry of promised)
      if (!this.#cut.has(entry) && !text.includes(entry.item))
        this.object('a list lacks an acknowledged plant')
  }

  /** At the end, compares the answers of all clients with the log. */
  checkEnd(): void {
    for (const { entry, told, gone } of this.#adding) {
      const times = this.#log.entries.filter((one) => one === entry).length
      const there = times > 0 || this.#cut.has(entry)
      if (times > 1) this.object('a plant was added twice')
      if (told.length > 1 || (told.length === 0 && !gone)) this.object(`${told.length} answers`)
      if (there && told[0] === 'nothing-added') this.object('nothing-added, but the plant is in the log')
    }
  }
}
