// The notes of imports in the store: one per import, changed in the same transaction as each batch, and never deleted.
import { CommandError } from '../../cli/console.ts'
import type { Store } from '../../store/engine.ts'

/**
 * `path`: absent for a pipe; `bytes`, `hash`: how much of the input was consumed, and its SHA-256 (hex); `date`: of the
 * last batch; `isWhole`: all of the input was added; `isAgain`: the import began with --again.
 */
export type Note = {
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

/** Names the note of a new import after the input up to its first plant, which two imports of one input have in common. */
export function nameNote(rows: NoteRow[], hash: string): string {
  const key = `${prefix}${hash}/`
  return key + rows.filter((row) => row.key.startsWith(key)).length
}

/**
 * Finds the import that an input continues, among the notes of what it begins with, in the order of their ends: an
 * interrupted one with --again, or else the longest. Throws CommandError if the input was changed since it was imported.
 */
export function findEarlier<T extends NoteRow>(
  rows: NoteRow[],
  matching: T[],
  path: string | undefined,
  again: boolean,
) {
  const interrupted = matching.findLast(({ note }) => note.isAgain && !note.isWhole)
  if (interrupted || again) return interrupted
  const named = rows.filter(({ note }) => path !== undefined && note.path === path)
  const [own] = named.sort((a, b) => b.note.date.localeCompare(a.note.date))
  if (own && !matching.some(({ key }) => key === own.key))
    throw new CommandError(
      `${path} no longer begins with what was imported from it on ${own.note.date}: import what is new from another ` +
        'file, or all of it with --again',
    )
  return matching.at(-1)
}
