// The progress of imports, kept in the store in the same transaction as each batch, so that it is always exact. There is
// one note per run, under its number, and none is ever deleted.
import { hash, randomUUID } from 'node:crypto'
import { type Checkpoint, type Sql, StoreRefused } from '../../store/store.ts'
import type { ImportOptions } from './import-options.ts'
import { nameOf, readThrough } from './input.ts'
import {
  findOwner,
  findStart,
  isAtWork,
  type Note,
  noteKeys,
  type Place,
  type Position,
  type Start,
} from './notes.ts'
import type { Records } from './records.ts'

const replaceNote = 'UPDATE meta SET value = $1 WHERE key = $2 AND value = $3'

type Row = { number: number; key: string; value: string; note: Note }

/** `file`: a copy of the input, if it is read from there; `path`: its own, undefined for a pipe. */
type Source = { records: Records; file: string; path: string | undefined }

export class ImportProgress {
  readonly #sql: Sql
  readonly #options: ImportOptions
  readonly #source: Source
  readonly #own: Omit<Note, keyof Place>
  #key = ''
  #value = ''

  constructor(sql: Sql, options: ImportOptions, source: Source) {
    this.#sql = sql
    this.#options = options
    this.#source = source
    const { path, records } = source
    const { head } = records.input
    this.#own = {
      ...findOwner(),
      path,
      head: { bytes: head.length, hash: hash('sha256', head) },
      run: randomUUID(),
      readAs: records.readAs,
      at: Date.now(),
      restarted: options.restart ?? false,
    }
  }

  /** Finds where to start. Throws StoreRefused when the input is being imported, or see `findStart`. */
  async findStart(): Promise<Start & { claim: () => Promise<boolean> }> {
    const rows = await this.#read(noteKeys)
    const { path, records } = this.#source
    const notes = rows.map(({ note }) => note)
    const { matching, size } = await this.#findMatching(notes)
    const related = rows.filter(
      ({ note }) => note.size === undefined && (matching.includes(note) || this.#isRelated(note)),
    )
    const running = related.find(({ note }) => isAtWork(note))
    if (running)
      throw new StoreRefused(
        `an import of ${nameOf(this.#options.path)} is running, as process ${running.note.pid}: wait until it ends`,
      )
    const start = findStart({ notes, matching, size, path, readAs: records.readAs }, this.#options)
    const number = (rows.at(-1)?.number ?? 0) + 1
    return { ...start, claim: async () => (await this.#takeOver(related)) && this.#insert(number, start) }
  }

  /** Claims the input. The next number is free only if nobody else has claimed anything since this run has looked. */
  async claim(): Promise<Start> {
    const start = await this.findStart()
    return (await start.claim()) ? start : this.claim()
  }

  /** True for an import from the same path, or of what began alike. */
  #isRelated({ path, head }: Note): boolean {
    return (path !== undefined && path === this.#source.path) || this.#beginsWith(head)
  }

  #beginsWith({ bytes, hash: known }: Pick<Position, 'bytes' | 'hash'>): boolean {
    const { head } = this.#source.records.input
    return bytes <= head.length && known === hash('sha256', head.subarray(0, bytes))
  }

  /** Finds notes whose part of the input is the same; of a pipe only its head can be known. */
  async #findMatching(notes: Note[]): Promise<{ matching: Note[]; size: number | undefined }> {
    const { file, records } = this.#source
    const { isFile, isWhole, head } = records.input
    const isLong = ({ end }: Note) => end.bytes > head.length
    const alike = notes.filter(
      (note) => note.end.records > 0 && this.#beginsWith(isLong(note) ? note.head : note.end),
    )
    if (isWhole || !isFile || alike.length === 0)
      return { matching: alike, size: isWhole ? head.length : undefined }
    const ends = alike.filter(isLong).map(({ end }) => end.bytes)
    const { size, hashes } = await readThrough(file, ends, this.#options.signal)
    return {
      size,
      matching: alike.filter((note) => !isLong(note) || hashes.get(note.end.bytes) === note.end.hash),
    }
  }

  /** Ends what is left of earlier runs, so that one that still runs elsewhere adds nothing more. */
  async #takeOver(rows: Row[]): Promise<boolean> {
    for (const { key, value, note } of rows) {
      const taken = JSON.stringify({ ...note, run: this.#own.run })
      if ((await this.#sql.execute(replaceNote, [taken, key, value])) === 0) return false
    }
    return true
  }

  async #insert(number: number, { from, end }: Place): Promise<boolean> {
    this.#key = noteKeys.replace('%', String(number))
    this.#value = JSON.stringify({ ...this.#own, from, end } satisfies Note)
    const insert = 'INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING'
    return (await this.#sql.execute(insert, [this.#key, this.#value])) === 1
  }

  /** Makes the checkpoint of a batch. It fails, and the batch with it, when another run has taken over. */
  mark({ from, end }: Place, size?: number): Checkpoint {
    const note: Note = { ...this.#own, from, end, at: Date.now(), ...(size !== undefined && { size }) }
    return { key: this.#key, value: JSON.stringify(note), before: this.#value }
  }

  /** Takes note that a checkpoint is in the store. */
  pass(mark: Checkpoint | undefined): void {
    /* c8 ignore next: a race with another import */
    this.#value = mark?.value ?? this.#value
  }

  /** True when a batch is known to be in the log. Throws StoreRefused when another run has taken over. */
  async holds(mark: Checkpoint | undefined): Promise<boolean> {
    const [row] = await this.#read(this.#key).catch(() => [])
    if (row && row.note.run !== this.#own.run)
      throw new StoreRefused(`another import of ${nameOf(this.#options.path)} has begun`)
    return row !== undefined && row.value === mark?.value
  }

  /** Notes that the input was read to its end. `size`: its bytes. */
  async finish(end: Position, size: number): Promise<void> {
    const { key, value, before } = this.mark({ from: end, end }, size)
    await this.#sql.execute(replaceNote, [value, key, before])
  }

  async #read(keys: string): Promise<Row[]> {
    const rows = await this.#sql.select('SELECT key, value FROM meta WHERE key LIKE $1', [keys])
    return rows
      .map(({ key, value }) => ({
        number: Number(String(key).slice(noteKeys.length - 1)),
        key: String(key),
        value: String(value),
        note: JSON.parse(String(value)) as Note,
      }))
      .sort((a, b) => a.number - b.number)
  }
}
