// The progress of imports: one note per import, changed in the same transaction as each batch. None is ever deleted.
import { CommandError, count } from '../../cli/console.ts'
import type { Store } from '../../store/engine.ts'

/**
 * `bytes`: how much of the input was consumed; `hash`: SHA-256 (hex) of it; `date`: of the last batch; `isWhole`: all of
 * the input was added; `isAgain`: the import began with --again; `path`: absent for a pipe.
 */
type Note = {
  path: string | undefined
  bytes: number
  hash: string
  date: string
  isWhole: boolean
  isAgain: boolean
}
export type NoteRow = { key: string; value: string; note: Note }

const prefix = 'import/'

export async function readNotes(store: Store | undefined): Promise<NoteRow[]> {
  const rows = [...((await store?.notes.read(prefix)) ?? [])]
  return rows.map(([key, value]) => ({ key, value, note: JSON.parse(value) }))
}

/**
 * Finds the import that an input continues: `matching` are the notes of what it begins with. An interrupted import with
 * --again comes before the longest one. Throws CommandError if the input was changed since it was imported.
 */
export function findEarlier<T extends { row: NoteRow }>(
  rows: NoteRow[],
  matching: T[],
  { path, name, again }: { path: string | undefined; name: string; again: boolean },
): T | undefined {
  const interrupted = matching.findLast(({ row: { note } }) => note.isAgain && !note.isWhole)
  if (interrupted || again) return interrupted
  const own = rows
    .filter(({ note }) => path !== undefined && note.path === path)
    .sort((a, b) => a.note.date.localeCompare(b.note.date))
    .at(-1)
  if (own && !matching.some(({ row }) => row === own))
    throw new CommandError(
      `${name} no longer begins with what was imported from it on ${own.note.date} (${count(own.note.bytes, 'byte')}): ` +
        'import what is new from another file, or all of it with --again',
    )
  return matching.sort((a, b) => a.row.note.bytes - b.row.note.bytes).at(-1)
}

/** Writes the note of an import. Two imports of one input have the same note, so only one of them can change it. */
export class Progress {
  readonly #rows: NoteRow[]
  readonly #path: string | undefined
  readonly #isAgain: boolean
  #key: string | undefined
  #before = ''

  /** `earlier`: the import that is continued, in its own note if it was interrupted. */
  constructor(
    rows: NoteRow[],
    earlier: NoteRow | undefined,
    { path, again }: { path: string | undefined; again: boolean },
  ) {
    const interrupted = earlier?.note.isWhole ? undefined : earlier
    this.#rows = rows
    this.#path = interrupted ? interrupted.note.path : path
    this.#isAgain = interrupted?.note.isAgain ?? again
    this.#key = interrupted?.key
    this.#before = interrupted?.value ?? ''
  }

  /** Makes the change for a batch; `first`: the hash of the input up to the first plant that is added, which names it. */
  change(first: string, { bytes, hash, isWhole }: Pick<Note, 'bytes' | 'hash' | 'isWhole'>) {
    const key = `${prefix}${first}/`
    this.#key ??= key + this.#rows.filter((row) => row.key.startsWith(key)).length
    const date = new Date().toISOString()
    const value = JSON.stringify({ path: this.#path, bytes, hash, date, isWhole, isAgain: this.#isAgain })
    return { key: this.#key, before: this.#before, value }
  }

  committed(value: string): void {
    this.#before = value
  }

  /** True if another import has changed the note meanwhile. */
  async isTaken(store: Store, value: string): Promise<boolean> {
    const now = (await store.notes.read(this.#key ?? prefix)).get(this.#key ?? '') ?? ''
    return now !== this.#before && now !== value
  }
}
