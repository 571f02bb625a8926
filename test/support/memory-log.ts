// A log of plants in memory, for tests that need only the three verbs: its answers come in any order, and it can be
// cut, refuse batches, and lose their outcomes.

import type { Entry, Head, Outcome, PlantLog } from '../../src/store/engine.ts'
import { type Epoch, Epochs } from '../../src/store/epochs.ts'
import { StoreUnavailable } from '../../src/store/errors.ts'

/** What is to go wrong with a batch: it is not taken, or taken or not without anybody hearing of it. */
export type Fault = 'refused' | 'lost' | 'added-and-lost'

export class MemoryLog implements PlantLog {
  entries: Entry[]
  readonly faults: Fault[] = []
  /** What each epoch held when it was the latest, or would hold now. */
  readonly #held = new Map<string, Entry[]>()
  #epochs: Epoch[] = [{ epoch: 'e1', start: 0 }]
  /** Decides when a step of a verb is done. */
  readonly #step: (label: string) => Promise<unknown>

  constructor(entries: Entry[] = [], step: (label: string) => Promise<unknown> = async () => {}) {
    this.entries = [...entries]
    this.#step = step
  }

  async append(entries: Entry[]): Promise<Outcome[]> {
    const fault = this.faults.shift()
    await this.#step('append: the batch is on its way')
    if (fault === 'refused') throw new StoreUnavailable('nothing-added', 'refused')
    const outcomes = fault === 'lost' ? [] : entries.map((entry) => this.#add(entry))
    const added = this.entries.slice()
    await this.#step('append: the outcomes are on their way')
    if (fault !== undefined) throw new StoreUnavailable('unknown', 'lost')
    if (!added.every((entry) => this.entries.includes(entry))) throw new StoreUnavailable('unknown', 'cut')
    return outcomes
  }

  #add(entry: Entry): Outcome {
    const known = entry.id === undefined ? undefined : this.entries.find(({ id }) => id === entry.id)
    if (known) return known.item === entry.item ? 'replayed' : 'conflict'
    this.entries.push(entry)
    return 'added'
  }

  async head(): Promise<Head> {
    await this.#step('head: asked for')
    const head = { position: this.entries.length, epochs: new Epochs([...this.#epochs]) }
    await this.#step('head: on its way')
    return head
  }

  async read(after: number, last: number, epoch: string): Promise<Buffer> {
    await this.#step('read: asked for')
    if (last > this.entries.length || new Epochs(this.#epochs).owner(last) !== epoch)
      throw new StoreUnavailable('unread', 'the log was cut')
    const items = this.entries.slice(after, last).map(({ item }) => item)
    await this.#step('read: on its way')
    return Buffer.from(`[${items.join()}]`)
  }

  /** Loses all entries after `position`; the log goes on in a new epoch. Returns what was lost. */
  cut(position: number): Entry[] {
    for (const { epoch } of this.#epochs) this.#hold(epoch)
    const lost = this.entries.splice(position)
    this.#epochs.push({ epoch: `e${this.#epochs.length + 1}`, start: this.entries.length })
    return lost
  }

  #hold(epoch: string): Entry[] {
    const held = this.#held.get(epoch) ?? [...this.entries]
    this.#held.set(epoch, held)
    return held
  }

  /** The JSON array that a page has to have: the items up to `last`, as the epoch that owns it held them. */
  listOf(after: number, last: number, epoch: string): string {
    const entries = this.#held.get(epoch) ?? this.entries
    const items = entries.slice(after, last).map(({ item }) => item)
    return `[${items.join()}]`
  }
}
