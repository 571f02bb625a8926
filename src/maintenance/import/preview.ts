// Where batches go that are only looked at. Their ids are tried out in a store that goes with the import, beside the
// plants that have them in the real one.
import { pathToFileURL } from 'node:url'
import pino from 'pino'
import { openStore } from '../../store/open.ts'
import type { Entry, Outcome, Store } from '../../store/store.ts'
import { type Batch, conflict, type Tally } from './batch-writer.ts'
import type { Progressed } from './import-place.ts'
import type { InputRecord } from './record.ts'
import type { Rejects } from './rejects.ts'
import { Scratch } from './scratch.ts'
import { beginning, type Sink } from './sink.ts'

export type PreviewOptions = {
  rejects: Rejects
  signal: AbortSignal
  /** The real one; without it, ids are held against each other alone. */
  store: Store | undefined
}

export class Preview implements Sink {
  readonly start = beginning
  readonly tally: Tally = { added: 0, replayed: 0, conflict: 0 }
  readonly #options: PreviewOptions
  readonly #scratch: Scratch
  #tried: Store | undefined
  #end: Progressed = beginning

  constructor(options: PreviewOptions) {
    this.#options = options
    this.#scratch = new Scratch(options.signal)
    options.rejects.open(beginning)
  }

  get committed(): Progressed {
    return this.#end
  }

  async write({ entries, records, end }: Batch): Promise<void> {
    const { rejects } = this.#options
    const withId = entries.filter(({ id }) => id !== undefined)
    const outcomes = (withId.length > 0 ? await this.#try(withId) : []).values()
    for (const [index, { id }] of entries.entries()) {
      const outcome = id === undefined ? 'added' : (outcomes.next().value as Outcome)
      this.tally[outcome]++
      if (outcome === 'conflict') rejects.add(records[index] as InputRecord, [conflict])
    }
    rejects.flush()
    this.#end = { ...end, rejects: rejects.bytes }
  }

  async #try(entries: Entry[]): Promise<Outcome[]> {
    const url = pathToFileURL(this.#scratch.join('ids.db')).href
    this.#tried ??= await openStore(url, { logger: pino({ level: 'silent' }) })
    await this.#tried.log.append(await this.#findKnown(entries))
    return this.#tried.log.append(entries)
  }

  async #findKnown(entries: Entry[]): Promise<Entry[]> {
    const ids = entries.map(({ id }) => id)
    const rows = await this.#options.store?.sql.select(`SELECT id, item FROM plants WHERE id IN (${ids})`)
    return (rows ?? []).map(({ id, item }) => ({ id: Number(id), item: String(item) }))
  }

  async settle(): Promise<void> {}

  async end(): Promise<void> {
    this.#options.rejects.flush()
  }

  async close(): Promise<void> {
    await this.#tried?.close()
    await this.#options.store?.close()
    this.#scratch.remove()
  }
}
