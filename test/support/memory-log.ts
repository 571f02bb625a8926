// A log of plants in memory, for tests that need only the three methods of a log. It can answer in any order, lose its
// last plants, refuse batches, and lose their outcomes.
import type { Entry, Head, Outcome, PlantLog } from '../../src/store/engine.ts'
import { StoreUnavailable } from '../../src/store/errors.ts'

/** The fault of a batch: it is refused, or its outcome is lost, with or without its plants. */
export type Fault = 'refused' | 'lost' | 'added-and-lost'

/** A committed row; `below`: the rows before it at that time. */
type Row = { entry: Entry; mark: string; below: readonly Row[] }

export class MemoryLog implements PlantLog {
  rows: Row[] = []
  readonly faults: Fault[] = []
  /** All rows that were ever committed, by position and mark. */
  readonly #held = new Map<string, Row>()
  #commits = 0
  /** Delays each step of a verb. */
  readonly #step: (label: string) => Promise<unknown>

  constructor(entries: Entry[] = [], step: (label: string) => Promise<unknown> = async () => {}) {
    this.#step = step
    this.add(...entries)
  }

  get entries(): Entry[] {
    return this.rows.map(({ entry }) => entry)
  }

  async append(entries: Entry[]): Promise<Outcome[]> {
    const fault = this.faults.shift()
    await this.#step('append: the batch is on its way')
    if (fault === 'refused') throw new StoreUnavailable('nothing-added', 'refused')
    const outcomes = fault === 'lost' ? [] : this.add(...entries)
    const added = this.rows.slice()
    await this.#step('append: the outcomes are on their way')
    if (fault !== undefined) throw new StoreUnavailable('unknown', 'lost')
    if (!added.every((row) => this.rows.includes(row))) throw new StoreUnavailable('unknown', 'cut')
    return outcomes
  }

  /** Commits entries at once. */
  add(...entries: Entry[]): Outcome[] {
    const mark = `${++this.#commits}`.padStart(11, 'm')
    return entries.map((entry) => {
      const known = entry.id === undefined ? undefined : this.entries.find(({ id }) => id === entry.id)
      if (known) return known.item === entry.item ? 'replayed' : 'conflict'
      const row = { entry, mark, below: this.rows.slice() }
      this.rows.push(row)
      this.#held.set(`${this.rows.length} ${mark}`, row)
      return 'added'
    })
  }

  async head(): Promise<Head> {
    await this.#step('head: asked for')
    const rows = this.rows.slice()
    const markOf = (position: number) => (position === 0 ? '' : rows[position - 1]?.mark)
    const head = { position: rows.length, mark: markOf(rows.length) ?? '', markOf }
    await this.#step('head: on its way')
    return head
  }

  async read(after: number, last: number, mark: string): Promise<Buffer> {
    await this.#step('read: asked for')
    if (last > 0 ? this.rows[last - 1]?.mark !== mark : mark !== '')
      throw new StoreUnavailable('unread', 'the log was cut')
    const items = this.entries.slice(after, last).map(({ item }) => item)
    await this.#step('read: on its way')
    return Buffer.from(`[${items.join()}]`)
  }

  /** Removes all rows after `position`, and returns their entries. */
  cut(position: number): Entry[] {
    return this.rows.splice(position).map(({ entry }) => entry)
  }

  /** The expected JSON array of a page: the items up to `last` when that row had this mark. */
  listOf(after: number, last: number, mark: string): string {
    const row = this.#held.get(`${last} ${mark}`)
    const rows = row ? [...row.below, row] : []
    return `[${rows.slice(after).map(({ entry }) => entry.item)}]`
  }
}
