// The progress of imports, kept in the store in the same transaction as each batch, so that it is always exact. There is
// one note per run, under its number, and none is ever deleted.
import { randomUUID, hash as sha256 } from 'node:crypto'
import { type Checkpoint, type Sql, StoreRefused } from '../../store/store.ts'
import { findStart, type Start } from './find-start.ts'
import type { ImportOptions } from './import-options.ts'
import { hashBeginnings, nameOf } from './input.ts'
import { findOwner, isAtWork } from './owner.ts'
import { type Note, noteKeys, type Place, type Position } from './position.ts'
import type { Records } from './records.ts'

const keyOf = (number: number) => noteKeys.replace('%', String(number))
const replaceNote = 'UPDATE meta SET value = $1 WHERE key = $2 AND value = $3'

type Row = { key: string; value: string; note: Note }

/** `file`: a copy of the input, if it is read from there; `path`: its own, undefined for a pipe. */
type Source = { records: Records; file: string; path: string | undefined }

export class ImportProgress {
  readonly #sql: Sql
  readonly #options: ImportOptions
  readonly #source: Source
  readonly #run = randomUUID()
  /** Hashes of the first bytes of the head, by their number. */
  readonly #heads = new Map<number, string>()
  #note: Note | undefined
  #key = ''
  #value = ''

  constructor(sql: Sql, options: ImportOptions, source: Source) {
    this.#sql = sql
    this.#options = options
    this.#source = source
  }

  /**
   * Finds where to start, and claims the input: the next number is free only if nobody else has claimed anything
   * meanwhile. Throws StoreRefused when the input is being imported, or see `findStart`.
   */
  async claim(): Promise<Start> {
    const { path, records } = this.#source
    for (;;) {
      const rows = await this.#read(noteKeys)
      const notes = rows.map(({ note }) => note)
      const matching = await this.#findMatching(notes)
      const related = rows.filter(({ note }) => matching.includes(note) || this.#isRelated(note))
      const running = related.find(({ note }) => !note.done && isAtWork(note))
      if (running)
        throw new StoreRefused(
          `an import of ${this.#name} is running, as process ${running.note.pid}: wait until it ends`,
        )
      const place = findStart({ notes, matching, path, readAs: records.readAs }, this.#options)
      this.#note = this.#makeNote(place)
      this.#key = keyOf(numberOf(rows.at(-1) ?? { key: keyOf(0) }) + 1)
      this.#value = JSON.stringify(this.#note)
      if ((await this.#takeOver(related)) && (await this.#insert())) return place
    }
  }

  get #name(): string {
    return nameOf(this.#options.path)
  }

  #makeNote({ from, end }: Place): Note {
    const { path, records } = this.#source
    const { readAs, input } = records
    const head = { bytes: input.head.length, hash: sha256('sha256', input.head) }
    const { restart: restarted = false } = this.#options
    const own = { ...findOwner(), path, head, run: this.#run, readAs, restarted }
    return { ...own, from, end, at: Date.now(), done: false }
  }

  /** True for an import from the same path, or of what began alike. */
  #isRelated({ path, head }: Note): boolean {
    return (path !== undefined && path === this.#source.path) || this.#beginsWith(head)
  }

  #beginsWith({ bytes, hash }: Pick<Position, 'bytes' | 'hash'>): boolean {
    const { head } = this.#source.records.input
    if (bytes > head.length) return false
    const known = this.#heads.get(bytes) ?? sha256('sha256', head.subarray(0, bytes))
    this.#heads.set(bytes, known)
    return known === hash
  }

  /** Finds notes whose part of the input is the same; of a pipe only its head can be known. */
  async #findMatching(notes: Note[]): Promise<Note[]> {
    const { file, records } = this.#source
    const { isFile, head } = records.input
    const isLong = ({ end }: Note) => end.bytes > head.length
    const alike = notes.filter(
      (note) => note.end.records > 0 && this.#beginsWith(isLong(note) ? note.head : note.end),
    )
    const ends = alike.filter(isLong).map(({ end }) => end.bytes)
    if (!isFile || ends.length === 0) return alike
    const hashes = await hashBeginnings(file, ends, this.#options.signal)
    return alike.filter((note) => !isLong(note) || hashes.get(note.end.bytes) === note.end.hash)
  }

  /** Ends what is left of earlier runs, so that one that still runs elsewhere adds nothing more. */
  async #takeOver(rows: Row[]): Promise<boolean> {
    for (const { key, value, note } of rows.filter(({ note }) => !note.done)) {
      const taken = JSON.stringify({ ...note, run: this.#run })
      if ((await this.#sql.execute(replaceNote, [taken, key, value])) === 0) return false
    }
    return true
  }

  async #insert(): Promise<boolean> {
    const insert = 'INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING'
    return (await this.#sql.execute(insert, [this.#key, this.#value])) === 1
  }

  /** Makes the checkpoint of a batch. It fails, and the batch with it, when another run has taken over. */
  mark(place: Place): Checkpoint {
    const note = { ...(this.#note as Note), ...place, at: Date.now() }
    return { key: this.#key, value: JSON.stringify(note), before: this.#value }
  }

  /** Takes note that a checkpoint is in the store. */
  pass(mark: Checkpoint | undefined): void {
    this.#value = mark?.value ?? this.#value
  }

  /** True when a batch is known to be in the log. Throws StoreRefused when another run has taken over. */
  async holds(mark: Checkpoint | undefined): Promise<boolean> {
    const [row] = await this.#read(this.#key).catch(() => [])
    if (row && row.note.run !== this.#run) throw new StoreRefused(`another import of ${this.#name} has begun`)
    return row !== undefined && row.value === mark?.value
  }

  /** Notes that the input was read to its end. */
  async finish(end: Position): Promise<void> {
    const { key, value, before } = this.mark({ from: end, end })
    const done = JSON.stringify({ ...JSON.parse(value), done: true } satisfies Note)
    await this.#sql.execute(replaceNote, [done, key, before])
  }

  async #read(keys: string): Promise<Row[]> {
    const rows = await this.#sql.select('SELECT key, value FROM meta WHERE key LIKE $1', [keys])
    return rows
      .map(({ key, value }) => ({ key: String(key), value: String(value), note: JSON.parse(String(value)) }))
      .sort((a, b) => numberOf(a) - numberOf(b))
  }
}

function numberOf({ key }: Pick<Row, 'key'>): number {
  return Number(key.slice(key.indexOf('/') + 1))
}
