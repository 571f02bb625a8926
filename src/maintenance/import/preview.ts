// A sink for batches that are only checked. Ids are held against the plants that have them in the store, and against the
// records before.
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { sameItem } from '../../store/same-item.ts'
import type { Entry, Outcome, Store } from '../../store/store.ts'
import type { Progressed } from './import-place.ts'
import type { InputRecord } from './record.ts'
import type { Rejects } from './rejects.ts'
import { type Batch, beginning, conflict, type Sink, type Tally } from './sink.ts'

export type PreviewOptions = {
  rejects: Rejects
  /** Without it, ids are held against each other alone. */
  store: Store | undefined
}

export class Preview implements Sink {
  readonly start = beginning
  readonly tally: Tally = { added: 0, replayed: 0, conflict: 0 }
  readonly #options: PreviewOptions
  /** The items of records with an id, in a file that SQLite removes by itself. */
  readonly #items = new DatabaseSync('')
  readonly #insert: StatementSync
  readonly #select: StatementSync
  #end: Progressed = beginning

  constructor(options: PreviewOptions) {
    this.#options = options
    this.#items.exec('CREATE TABLE items (id INTEGER PRIMARY KEY, item TEXT NOT NULL)')
    this.#insert = this.#items.prepare('INSERT INTO items VALUES (?, ?) ON CONFLICT DO NOTHING')
    this.#select = this.#items.prepare('SELECT item FROM items WHERE id = ?')
    options.rejects.open(beginning)
  }

  get committed(): Progressed {
    return this.#end
  }

  async write({ entries, records, end }: Batch): Promise<void> {
    const { rejects } = this.#options
    const known = await this.#findKnown(entries)
    for (const [index, entry] of entries.entries()) {
      const outcome = this.#judge(entry, known)
      this.tally[outcome]++
      if (outcome === 'conflict') rejects.add(records[index] as InputRecord, [conflict])
    }
    rejects.flush()
    this.#end = { ...end, rejects: rejects.bytes }
  }

  #judge({ id, item }: Entry, known: Map<number, string>): Outcome {
    if (id === undefined) return 'added'
    const stored = known.get(id)
    if (stored === undefined && this.#insert.run(id, item).changes === 1) return 'added'
    return sameItem(stored ?? String(this.#select.get(id)?.item), item) ? 'replayed' : 'conflict'
  }

  async #findKnown(entries: Entry[]): Promise<Map<number, string>> {
    const ids = entries.flatMap(({ id }) => id ?? [])
    const rows = await this.#options.store?.sql.select(`SELECT id, item FROM plants WHERE id IN (${ids})`)
    return new Map((rows ?? []).map(({ id, item }) => [Number(id), String(item)]))
  }

  async settle(): Promise<void> {}

  async end(): Promise<void> {
    this.#options.rejects.flush()
  }

  async close(): Promise<void> {
    this.#items.close()
    await this.#options.store?.close()
  }
}
