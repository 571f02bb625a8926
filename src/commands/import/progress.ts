// The notes of imports in the store: one per import, changed in the same transaction as each batch, and never deleted.
import { CommandError } from '../../cli/console.ts'
import type { Store } from '../../store/engine.ts'

/**
 * `path`: absent for a pipe; `bytes`, `hash`: how much of the input was consumed, and its SHA-256 (hex); `date`: of the
 * last batch; `isWhole`: all of the input was added; `isAgain`: the import began with --again.
 */
export type Note = {
  path?: string | undefined
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

/** Names the note of a new import after the hash of its first batch, which two imports of one input have in common. */
export function noteKey(rows: NoteRow[], hash: string): string {
  const key = `${prefix}${hash}/`
  return key + rows.filter((row) => row.key.startsWith(key)).length
}

/**
 * Finds the import that an input continues, among the notes of what it begins with: an interrupted one with --again, or
 * else the longest. Throws CommandError if the input was imported from this path before, and was changed since.
 */
export function findEarlier<T extends NoteRow>(
  rows: NoteRow[],
  matching: T[],
  path: string | undefined,
  again: boolean,
): T | undefined {
  const interrupted = matching.findLast(({ note }) => note.isAgain && !note.isWhole)
  if (interrupted || again) return interrupted
  const [own] = rows
    .filter(({ note }) => path !== undefined && note.path === path)
    .sort((a, b) => b.note.date.localeCompare(a.note.date))
  if (own && !matching.some(({ key }) => key === own.key))
    throw new CommandError(
      `${path} no longer begins with what was imported from it on ${own.note.date}: import what is new from another ` +
        'file, or all of it with --again',
    )
  // The matching notes are in the order of their ends.
  return matching.at(-1)
}
