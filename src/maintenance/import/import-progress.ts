// The progress of an import, kept in the store in the same transaction as each batch, so that it is always exact.
import { randomUUID } from 'node:crypto'
import { type Checkpoint, type Row, type Store, StoreRefused } from '../../store/store.ts'
import { type Owner, thisProcess } from './import-owner.ts'

/** `records`, `line`: read up to there; `rejects`: length of the file of rejected records, in bytes. */
export type Position = { records: number; line: number; rejects: number }

/**
 * `run`: the last import; `at`: its time, in milliseconds since 1970; `options`: those that change what a record is;
 * `hash`: of the first records that were consumed.
 */
export type ImportProgress = Position &
  Owner & { run: string; name: string; at: number; done: boolean; options: string; hash: string }

/** Progress with its row. */
export type Found = { key: string; value: string; progress: ImportProgress }

/** `hashes`: of the first records, see `Records`. */
export type Import = { name: string; hashes: string[]; options: unknown }

const prefix = 'import:'
/** Number of finished imports that are remembered, so that resuming one of them adds nothing. */
const keptImports = 100

export class ProgressStore {
  readonly #store: Store
  readonly #hashes: string[]
  readonly #own: Owner & Pick<ImportProgress, 'run' | 'name' | 'options'>
  readonly #ownKey: string
  #key: string

  constructor(store: Store, { name, hashes, options }: Import) {
    this.#store = store
    this.#hashes = hashes
    this.#own = { ...thisProcess(), run: randomUUID(), name, options: JSON.stringify(options) }
    this.#ownKey = prefix + hashes.at(-1)
    this.#key = this.#ownKey
  }

  /** Finds the most advanced progress of this input, or of an input that this one begins with. */
  async find(): Promise<Found | undefined> {
    const rank = ({ key, progress }: Found) =>
      key === this.#ownKey ? Number.POSITIVE_INFINITY : this.#hashes.indexOf(progress.hash)
    const [found] = (await this.#readAll())
      .filter((row) => rank(row) > 0)
      .toSorted((a, b) => rank(b) - rank(a))
    return found && this.#readSettled(found.key)
  }

  /** True when the earlier import had other options. */
  isOtherwise({ progress }: Found): boolean {
    return progress.options !== this.#own.options
  }

  /** True when the import of another input of this name was interrupted. */
  async hasNamesake(): Promise<boolean> {
    return (await this.#readAll()).some(({ progress }) => progress.name === this.#own.name && !progress.done)
  }

  /**
   * Claims the progress for this run. A finished import whose input has grown keeps its own row, unless it is resumed.
   * Throws StoreRefused when another import was faster.
   */
  async claim(start: Position, known: Found | undefined, isResumed: boolean): Promise<void> {
    const isKept = known?.progress.done && !isResumed && known.key !== this.#ownKey
    const found = isKept ? undefined : known
    if (found) this.#key = found.key
    const { key, value } = this.mark(start)
    const claimed = await (found
      ? this.#store.sql.execute('UPDATE meta SET value = $1 WHERE key = $2 AND value = $3', [
          value,
          key,
          found.value,
        ])
      : this.#store.sql.execute(
          'INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING',
          [key, value],
        ))
    /* c8 ignore next: two imports of one input claim it at the same moment */
    if (claimed === 0) throw this.#overtaken()
  }

  /** True when the batch of this run that ends at the position is in the log. */
  async holds({ records }: Position): Promise<boolean> {
    const { progress } = (await this.#readSettled(this.#key)) as Found
    return progress.run === this.#own.run && progress.records === records
  }

  /** Makes the checkpoint of a batch that ends at the position. */
  mark(position: Position, done = false): Checkpoint {
    const hash = this.#hashes[Math.min(position.records, this.#hashes.length - 1)] as string
    const progress: ImportProgress = { ...this.#own, ...position, hash, at: Date.now(), done }
    return { key: this.#key, value: JSON.stringify(progress) }
  }

  /** Marks the import as finished, and forgets the oldest finished ones. */
  async finish(position: Position): Promise<void> {
    const { key, value } = this.mark(position, true)
    await this.#store.sql.execute('UPDATE meta SET value = $1 WHERE key = $2', [value, key])
    const done = (await this.#readAll()).filter(({ progress }) => progress.done)
    const oldest = done.sort((a, b) => b.progress.at - a.progress.at).slice(keptImports)
    for (const { key } of oldest) await this.#store.sql.execute('DELETE FROM meta WHERE key = $1', [key])
  }

  /** Throws StoreRefused when another run has taken over. */
  async guard(): Promise<void> {
    if ((await this.#read(this.#key))?.progress.run !== this.#own.run) throw this.#overtaken()
  }

  #overtaken(): StoreRefused {
    return new StoreRefused(`another import of ${this.#own.name} has begun`)
  }

  /**
   * Reads the progress after a write, which waits for all batches before it, even for a COMMIT that a killed process
   * has left under way at the server.
   */
  async #readSettled(key: string): Promise<Found | undefined> {
    await this.#store.sql.execute('UPDATE meta SET value = value WHERE key = $1', [key])
    return this.#read(key)
  }

  async #read(key: string): Promise<Found | undefined> {
    const [row] = await this.#store.sql.select('SELECT key, value FROM meta WHERE key = $1', [key])
    return row && toFound(row)
  }

  async #readAll(): Promise<Found[]> {
    const rows = await this.#store.sql.select(`SELECT key, value FROM meta WHERE key LIKE '${prefix}%'`)
    return rows.map(toFound)
  }
}

function toFound({ key, value }: Row): Found {
  return { key: String(key), value: String(value), progress: JSON.parse(String(value)) }
}
