// The progress of an import, kept in the store in the same transaction as each batch, so that it is always exact. There
// is one note per run, under its number, and none is ever deleted.
import { hash, randomUUID } from 'node:crypto'
import { count } from '../../runtime/count.ts'
import type { Entry, Outcome, Store } from '../../store/engine.ts'
import { StoreRefused } from '../../store/errors.ts'
import type { ImportOptions } from './import-options.ts'
import { type Input, nameOf, type Reading } from './input.ts'
import {
  type Beginning,
  beginning,
  findOwner,
  isAtWork,
  type Note,
  type NoteRow,
  noteKeys,
  numberOf,
  type Position,
  readNotes,
} from './notes.ts'

type Source = { store: Store; options: ImportOptions; input: Input; reading: Reading }

export class Progress {
  readonly #source: Source
  readonly #name: string
  readonly #own: Omit<Note, 'at' | 'end'>
  #key = ''
  #value = ''
  /** The note by which the input is known. */
  #known: Note | undefined

  constructor(source: Source) {
    this.#source = source
    this.#name = nameOf(source.options.path)
    const { head } = source.reading
    this.#own = {
      path: source.input.path,
      head: { bytes: head.length, hash: hash('sha256', head) },
      owner: findOwner(),
      run: randomUUID(),
    }
  }

  /**
   * Claims the input; resolves to where to start. Throws StoreRefused when it is being imported, when it was imported
   * before and neither `resume` nor `restart` is set, or when it was changed since.
   */
  async claim(): Promise<Position> {
    const { store, input } = this.#source
    const { path } = input
    const rows = await readNotes(store)
    const named = rows.filter(({ note }) => path !== undefined && note.path === path)
    const unfinished = rows.filter(
      (row) => row.note.size === undefined && (named.includes(row) || this.#beginsWith(row.note.head)),
    )
    const running = unfinished.find(({ note }) => isAtWork(note.owner))
    if (running)
      throw new StoreRefused(
        `an import of ${this.#name} is running, as process ${running.note.owner.pid}: wait until it ends`,
      )
    const start = await this.#findStart(rows, named)
    this.#key = `${noteKeys}${numberOf(rows.at(-1)?.key ?? '') + 1}`
    this.#value = this.noteOf(start)
    // The next number is free only if nobody else has claimed anything since this run has looked.
    const own = { key: this.#key, before: '', value: this.#value }
    return (await this.#takeOver(unfinished)) && (await store.notes.change(own)) ? start : this.claim()
  }

  /** The rule for going on: behind what an earlier import consumed, if that part of the input is the same to the byte. */
  async #findStart(rows: NoteRow[], named: NoteRow[]): Promise<Position> {
    const { resume, restart, say } = this.#source.options
    const { matching, size } = await this.#findMatching(rows)
    if (restart) return beginning
    const own = named.findLast(({ note }) => note.end.valid > 0)
    // Without `resume` another input may begin with the whole of an earlier one.
    const isSame = ({ size: whole = size, end }: Note) => end.valid > 0 && whole === (size ?? whole)
    const [longest] = matching
      .filter(({ note }) => resume || isSame(note))
      .sort((a, b) => b.note.end.bytes - a.note.end.bytes)
    this.#known = (own ?? longest)?.note
    if (own && !matching.includes(own)) throw this.refuseChanged()
    if (this.#known && !resume) throw this.#refuseAgain(this.#known)
    const { end } = this.#known ?? { end: beginning }
    if (this.#known) say(`${this.#name}: ${count(end.records, 'record')} already imported`)
    else if (resume)
      say(`${this.#name}: nothing is known of an earlier import, so this one begins at the start`)
    return end
  }

  #refuseAgain({ at, end, path, size }: Note): StoreRefused {
    const when = `on ${new Date(at).toISOString()}${path === undefined ? '' : ` from ${path}`}`
    const records = count(end.records, 'record')
    return new StoreRefused(
      size === undefined
        ? `${this.#name}: an import was cut short after ${records}, ${when}; --resume goes on there, --restart begins anew and adds them again`
        : `${this.#name}: ${records} already imported ${when}; --resume adds what is new, --restart adds all of them again`,
    )
  }

  /** Makes the error of an input whose beginning is not what was imported. */
  refuseChanged(): StoreRefused {
    const { at, end } = this.#known as Note
    return new StoreRefused(
      `${this.#name} does not begin any more with what was imported on ${new Date(at).toISOString()} (${count(end.records, 'record')}, ` +
        `${count(end.bytes, 'byte')}): it cannot be resumed; import what is new from a file of its own, or all of it with --restart`,
    )
  }

  #beginsWith({ bytes, hash: known }: Beginning): boolean {
    const { head } = this.#source.reading
    return bytes <= head.length && known === hash('sha256', head.subarray(0, bytes))
  }

  /** Finds notes whose part of the input is the same; of a pipe only its head can be known. */
  async #findMatching(rows: NoteRow[]): Promise<{ matching: NoteRow[]; size: number | undefined }> {
    const { input, reading } = this.#source
    const { isWhole, head } = reading
    const isLong = ({ note }: NoteRow) => note.end.bytes > head.length
    const alike = rows.filter(
      (row) => row.note.end.records > 0 && this.#beginsWith(isLong(row) ? row.note.head : row.note.end),
    )
    if (isWhole) return { matching: alike, size: head.length }
    if (!input.isFile || alike.length === 0) return { matching: alike, size: undefined }
    const { size, hashes } = await input.readThrough(alike.map(({ note }) => note.end.bytes))
    return { matching: alike.filter(({ note: { end } }) => hashes.get(end.bytes) === end.hash), size }
  }

  /** Ends what is left of earlier runs, so that one that still runs elsewhere adds nothing more. */
  async #takeOver(rows: NoteRow[]): Promise<boolean> {
    for (const { key, value, note } of rows) {
      const taken = JSON.stringify({ ...note, run: this.#own.run })
      if (!(await this.#source.store.notes.change({ key, before: value, value: taken }))) return false
    }
    return true
  }

  /** Makes the note of a position; `size`: of the input, once all of it was read. */
  noteOf(end: Position, size?: number): string {
    return JSON.stringify({ ...this.#own, at: Date.now(), end, size })
  }

  /** Appends a batch together with its note. It fails when another run has taken over. */
  async append(entries: Entry[], value: string): Promise<Outcome[]> {
    const note = { key: this.#key, value, before: this.#value }
    const outcomes = await this.#source.store.log.append(entries, undefined, note)
    this.#value = value
    return outcomes
  }

  /** True when the batch of a note is known to be in the log. Throws StoreRefused when another run has taken over. */
  async holds(value: string): Promise<boolean> {
    const rows = await readNotes(this.#source.store).catch(() => [])
    const row = rows.find(({ key }) => key === this.#key)
    if (row && row.note.run !== this.#own.run)
      throw new StoreRefused(`another import of ${this.#name} has begun`)
    if (row?.value === value) this.#value = value
    return row?.value === value
  }

  /** Notes that the input was read to its end. */
  async finish(end: Position, size: number): Promise<void> {
    const value = this.noteOf(end, size)
    await this.#source.store.notes.change({ key: this.#key, before: this.#value, value })
  }
}
