// Adds the plants of a checked input that are new, each batch with the progress in the same transaction.
import { setTimeout as sleep } from 'node:timers/promises'
import { CommandError } from '../../cli/console.ts'
import type { Entry, NoteChange, Outcome, Store } from '../../store/engine.ts'
import { StoreUnavailable } from '../../store/errors.ts'
import type { Checked, Match, Note } from './check.ts'
import { InputError } from './input.ts'

/** `path`: of the input; `earlier`: the import to continue; `again`: --again is set. */
type Target = { path: string | undefined; store: Store; earlier: Match | undefined; again: boolean }
/** Receives the outcomes of a batch, and the number of its last plant. */
type OnBatch = (outcomes: Outcome[], last: number) => void

/**
 * Appends the plants after the end of the earlier import. Resolves to a change of the note to make once the results are
 * shown, if any: until then, the same command with --again continues.
 */
export async function addPlants(checked: Checked, target: Target, onBatch: OnBatch) {
  const { path, store, earlier, again } = target
  // An interrupted import reuses its note, so that of two concurrent imports of one input only one succeeds.
  const own = earlier?.isWhole ? undefined : earlier
  const isAgain = own?.isAgain ?? again
  const key = own?.key ?? checked.newKey
  const isNew = earlier?.plants !== checked.plants
  // A note of an interrupted import stays for inputs that begin like this one. Without new plants, the input is known at
  // both paths.
  if (earlier && (isNew ? own : earlier.path !== path)) {
    const copy = { ...JSON.parse(earlier.value), path: isNew ? earlier.path : path, isAgain: false }
    const copying = append(store, [], { key: checked.newKey, before: '', value: JSON.stringify(copy) })
    // Without new plants the import is done even if this fails, such as when another process makes the same note.
    await (isNew ? copying : copying.catch(() => {}))
  }
  let [before, done] = [own?.value ?? '', earlier?.plants ?? 0]
  for (const { last, bytes, hash } of checked.batches) {
    if (last <= done) continue
    const isWhole = last === checked.plants && !isAgain
    const date = new Date().toISOString()
    const note: Note = { path, bytes, hash, valid: last, date, isWhole, isAgain }
    const value = JSON.stringify(note)
    onBatch(await append(store, checked.kept.readPlants(done, last), { key, before, value }), last)
    before = value
    done = last
    // Gives other processes, which poll for the lock of a SQLite file, a chance to get it.
    await sleep(2)
  }
  const isOpen = isAgain && (again || isNew)
  return isOpen ? { key, before, value: JSON.stringify({ ...JSON.parse(before), isWhole: true }) } : undefined
}

/** Throws InputError or CommandError. */
export async function append(store: Store, entries: Entry[], note: NoteChange): Promise<Outcome[]> {
  try {
    return await store.log.append(entries, { note })
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    const now = (await store.notes(note.key).catch(() => undefined))?.get(note.key) ?? note.before
    if (error.outcome === 'nothing-added' && now !== note.before)
      throw new InputError(
        'another import of this input, or of one with the same first record, is running: wait until it ends',
      )
    throw new CommandError(`the import was interrupted: ${error.message}; run the same command to continue`)
  }
}

/**
 * Finds the import that an input continues: with --again an interrupted one that began so, otherwise the longest, and of
 * equal ones the first by which no less was valid, or the first, which is not a copy. `matches` is sorted by end, then as
 * `notes`. Throws CommandError if the input was changed since it was imported.
 */
export function findEarlier({ notes, matches }: Checked, path: string | undefined, again: boolean) {
  if (again) return matches.findLast(({ isAgain, isWhole }) => isAgain && !isWhole)
  const longest = matches.filter(({ bytes }) => bytes === matches.at(-1)?.bytes)
  const named = notes
    .filter((note) => path !== undefined && note.path === path)
    .toSorted((one, other) => one.date.localeCompare(other.date))
  const latest = [named.at(-1), named.findLast(({ isWhole, isAgain }) => isWhole || !isAgain)]
  const last = latest.find((note) => note && !matches.some(({ key }) => key === note.key))
  if (last === undefined) return longest.find(({ valid, plants }) => valid >= plants) ?? longest[0]
  throw new CommandError(
    `${path} no longer starts with what was imported on ${last.date}: import only the new records, or all with --again`,
  )
}
