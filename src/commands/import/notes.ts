// The notes of imports in the store: one per import, changed in the same transaction as each batch, and never deleted.
import { CommandError } from '../../cli/console.ts'
import type { Store } from '../../store/engine.ts'

/**
 * `path`: absent for a pipe; `bytes`, `hash`: how much of the input was consumed, and its SHA-256 (hex); `valid`: the number
 * of plants in it; `date`: of the last batch; `isWhole`: all of the input was added, and with --again the results shown;
 * `isAgain`: the import began with --again.
 */
export type Note = {
  path?: string | undefined
  bytes: number
  hash: string
  valid: number
  date: string
  isWhole: boolean
  isAgain: boolean
}
/** A note as it is stored: its `value` is JSON. */
type StoredNote = Note & { key: string; value: string }
/** A note whose bytes the input starts with, and the numbers of plants and of conflicts in them. */
export type Match = StoredNote & { plants: number; conflicts: number }

const prefix = 'import/'

type Imports = { notes: StoredNote[]; matches: Match[] }

/** Reads the notes, those of one name in the order in which they were made. */
export async function readNotes(store: Store | undefined): Promise<StoredNote[]> {
  const values = [...((await store?.notes(prefix)) ?? [])]
  const notes = values.map(([key, value]): StoredNote => ({ ...JSON.parse(value), key, value }))
  return notes.toSorted((one, other) => one.key.localeCompare(other.key, 'en', { numeric: true }))
}

/** Names the note of a new import by the hash up to the first record: two imports of one input get the same name. */
export function nameNote(notes: StoredNote[], firstHash: string): string {
  const start = `${prefix}${firstHash}/`
  return start + notes.filter(({ key }) => key.startsWith(start)).length
}

/**
 * Finds the import that an input continues: with --again an interrupted one that began so, otherwise the longest, and of
 * equal ones the first, which is not a copy. `matches` is sorted by end, then as `notes`. Throws CommandError if the
 * input was changed since it was imported.
 */
export function findEarlier({ notes, matches }: Imports, path: string | undefined, again: boolean) {
  if (again) return matches.findLast(({ isAgain, isWhole }) => isAgain && !isWhole)
  const longest = matches.find(({ bytes }) => bytes === matches.at(-1)?.bytes)
  const named = notes
    .filter((note) => path !== undefined && note.path === path)
    .toSorted((one, other) => one.date.localeCompare(other.date))
  const latest = [named.at(-1), named.findLast(({ isWhole, isAgain }) => isWhole || !isAgain)]
  const last = latest.find((note) => note && !matches.some(({ key }) => key === note.key))
  if (last === undefined) return longest
  throw new CommandError(
    `${path} no longer starts with what was imported on ${last.date}: import only the new records, or all with --again`,
  )
}
