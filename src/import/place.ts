// How far an import has come, kept in the store along with each batch: what was committed and what the place says can
// never differ.
import { createHash, randomUUID } from 'node:crypto'
import { setMark } from '../store/marks.ts'
import { type Mark, type Store, StoreRefused } from '../store/store.ts'

/** `records`, `line`: what was read by then; `rejects`: how long the file of rejected records was, in bytes. */
export type Progressed = { records: number; line: number; rejects: number }

/** `run`: which import was there last; `at`: when, in milliseconds since 1970. */
export type Place = Progressed & { run: string; name: string; at: number; done: boolean }

/** `head`: what the input begins with; `options`: what else decides what a record is. */
export type Identity = { name: string; head: Buffer; options: unknown }

const prefix = 'import:'
/** Of the imports that are over, so many are remembered: to resume one of them adds nothing. */
const keptPlaces = 100

export class Places {
  readonly #store: Store
  readonly #key: string
  readonly #name: string
  readonly #run = randomUUID()

  constructor(store: Store, { name, head, options }: Identity) {
    const hash = createHash('sha256').update(JSON.stringify(options)).update('\n').update(head)
    this.#key = prefix + hash.digest('base64url')
    this.#store = store
    this.#name = name
  }

  /** Where an import of this input came to, if there was one. */
  async find(): Promise<Place | undefined> {
    await this.#wait()
    const [row] = await this.#store.sql.select('SELECT value FROM meta WHERE key = $1', [this.#key])
    return row && (JSON.parse(String(row.value)) as Place)
  }

  /** Throws StoreRefused when it is another input of this name that was cut short. */
  async checkName(): Promise<void> {
    const places = (await this.#readAll()).map(({ place }) => place)
    if (places.some(({ name, done }) => name === this.#name && !done))
      throw new StoreRefused(
        `${this.#name} does not begin like the input whose import was cut short, or the options differ: it cannot be resumed`,
      )
  }

  /** Whether the batch of this run that ends there is in the log. */
  async holds({ records }: Progressed): Promise<boolean> {
    const place = await this.find()
    return place?.run === this.#run && place.records === records
  }

  /** The mark of a batch that ends there. */
  mark(progressed: Progressed, done = false): Mark {
    const place: Place = { ...progressed, run: this.#run, name: this.#name, at: Date.now(), done }
    return { key: this.#key, value: JSON.stringify(place) }
  }

  /** Nothing is left. Forgets the oldest of the imports that are over. */
  async finish(progressed: Progressed): Promise<void> {
    await this.set(progressed, true)
    const done = (await this.#readAll()).filter(({ place }) => place.done)
    const oldest = done.sort((a, b) => b.place.at - a.place.at).slice(keptPlaces)
    for (const { key } of oldest) await this.#store.sql.execute('DELETE FROM meta WHERE key = $1', [key])
  }

  /** Takes the place over, outside a batch. */
  async set(progressed: Progressed, done = false): Promise<void> {
    const { key, value } = this.mark(progressed, done)
    await this.#store.sql.execute(setMark('$1', '$2'), [key, value])
  }

  /** Throws StoreRefused when another run has taken the place over. */
  async guard(): Promise<void> {
    const [row] = await this.#store.sql.select('SELECT value FROM meta WHERE key = $1', [this.#key])
    if (row && (JSON.parse(String(row.value)) as Place).run === this.#run) return
    throw new StoreRefused(`another import of ${this.#name} has begun`)
  }

  /**
   * A write comes after every batch that was handed over before, also one of a process that was killed and whose COMMIT
   * is still under way at the server.
   */
  async #wait(): Promise<void> {
    await this.#store.sql.execute('UPDATE meta SET value = value WHERE key = $1', [this.#key])
  }

  async #readAll(): Promise<{ key: string; place: Place }[]> {
    const rows = await this.#store.sql.select(`SELECT key, value FROM meta WHERE key LIKE '${prefix}%'`)
    return rows.map(({ key, value }) => ({ key: String(key), place: JSON.parse(String(value)) }))
  }
}
