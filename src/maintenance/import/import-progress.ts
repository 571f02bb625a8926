// The progress of an import, kept in the store in the same transaction as each batch, so that it is always exact.
import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import { count } from '../../runtime/count.ts'
import { type Checkpoint, type Row, type Store, StoreRefused } from '../../store/store.ts'
import type { ImportOptions } from './import-options.ts'
import { isAtWork, type Owner, thisProcess } from './import-owner.ts'
import type { Input } from './input.ts'
import type { Records } from './records.ts'

/** `records`, `line`: read up to there; `rejects`: length of the file of rejected records, in bytes. */
export type Position = { records: number; line: number; rejects: number }

export const beginning: Position = { records: 0, line: 0, rejects: 0 }

/**
 * `run`: the last import; `path`: of its input; `readAs`: options that change what a record is; `hash`: of the first
 * records that were consumed; `at`: in milliseconds since 1970.
 */
type Progress = Position &
  Owner & { run: string; path: string; readAs: string; hash: string; at: number; done: boolean }

/** Progress with its row. */
type Found = { key: string; value: string; progress: Progress }

export type ImportId = { path: string; input: Input; records: Records }

const prefix = 'import:'
/** Number of finished imports that are remembered, so that resuming one of them adds nothing. */
const keptImports = 100

export class ProgressStore {
  readonly #store: Store
  readonly #name: string
  readonly #hashes: string[]
  readonly #own: Owner & Pick<Progress, 'run' | 'path' | 'readAs'>
  #key: string
  /** The progress that this run goes on with, or replaces. */
  #found: Found | undefined

  constructor(store: Store, { path, input: { name }, records: { hashes, readAs } }: ImportId) {
    this.#store = store
    this.#name = name
    this.#hashes = hashes
    const own = { run: randomUUID(), path: path === '-' ? path : resolve(path), readAs }
    this.#own = { ...thisProcess(), ...own }
    this.#key = prefix + hashes.at(-1)
  }

  /**
   * Finds where to start. Throws StoreRefused when an import of the input runs, or was interrupted and neither `resume`
   * nor `restart` is set.
   */
  async findStart({
    resume,
    restart,
    say,
  }: Pick<ImportOptions, 'resume' | 'restart' | 'say'>): Promise<Position> {
    const found = await this.#find()
    if (!found) {
      if (resume && (await this.#hasNamesake()))
        throw new StoreRefused(
          `${this.#name} does not begin like the input whose import was cut short: it cannot be resumed`,
        )
      return beginning
    }
    const { records, line, rejects, done, readAs, ...owner } = found.progress
    if (!done && isAtWork(owner))
      throw new StoreRefused(
        `an import of ${this.#name} is running, as process ${owner.pid}: wait until it ends`,
      )
    // A finished import whose input has grown keeps its own row, unless it is resumed.
    if (!done || resume || found.key === this.#key) {
      this.#key = found.key
      this.#found = found
    }
    const already = count(records, 'record')
    if (resume) {
      if (readAs !== this.#own.readAs)
        throw new StoreRefused(
          `${this.#name}: the options differ from those of the import that was cut short: it cannot be resumed`,
        )
      say(`${this.#name}: ${already} already imported`)
      return { records, line, rejects }
    }
    if (!done && records > 0 && !restart)
      throw new StoreRefused(
        `${this.#name}: an import was cut short after ${already}; --resume goes on there, --restart begins anew and adds them again`,
      )
    return beginning
  }

  /** Finds the most advanced progress of this input, or of an input that this one begins with. */
  async #find(): Promise<Found | undefined> {
    const rank = ({ key, progress }: Found) =>
      key === this.#key ? Number.POSITIVE_INFINITY : this.#hashes.indexOf(progress.hash)
    const [found] = (await this.#readAll())
      .filter((row) => rank(row) > 0)
      .toSorted((a, b) => rank(b) - rank(a))
    return found && this.#readSettled(found.key)
  }

  /** True when the import of another input of this name was interrupted. */
  async #hasNamesake(): Promise<boolean> {
    return (await this.#readAll()).some(({ progress }) => progress.path === this.#own.path && !progress.done)
  }

  /** Claims the progress for this run. Throws StoreRefused when another import was faster. */
  async claim(start: Position): Promise<void> {
    const { key, value } = this.mark(start)
    const claimed = await this.#store.sql.execute(
      `INSERT INTO meta (key, value) VALUES ($1, $2)
      ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE meta.value = $3`,
      [key, value, this.#found?.value ?? null],
    )
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
    const progress: Progress = { ...this.#own, ...position, hash, at: Date.now(), done }
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
    return new StoreRefused(`another import of ${this.#name} has begun`)
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
