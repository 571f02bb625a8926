// Adds the new plants of a checked input. Each batch updates the progress in the same transaction.
import { setTimeout as sleep } from 'node:timers/promises'
import { CommandError } from '../../cli/console.ts'
import type { Entry, NoteChange, Outcome, Store } from '../../store/engine.ts'
import { StoreUnavailable } from '../../store/errors.ts'
import type { Checked, Match, Note } from './check.ts'
import { InputError } from './input.ts'

/** `path`: of the input; `earlier`: the import to continue; `again`: the option --again. */
type Target = { path: string | undefined; store: Store; earlier: Match | undefined; again: boolean }
/** Receives the outcomes of a batch, and the number of its last plant. */
type OnBatch = (outcomes: Outcome[], last: number) => void

/**
 * Appends the plants after the end of the earlier import. With --again, resolves to a last change of the note, to be
 * made after the results are shown: until then, the same command continues this import.
 */
export async function addPlants(checked: Checked, target: Target, onBatch: OnBatch) {
  const { path, store, earlier, again } = target
  // An interrupted import continues with its note, so that of two concurrent imports of one input only one succeeds.
  const own = earlier?.isWhole ? undefined : earlier
  const isAgain = own?.isAgain ?? again
  const key = own?.key ?? checked.newKey
  const isNew = earlier?.plants !== checked.plants
  // Keep a copy of the note of an interrupted import, for other inputs with the same prefix. Without new plants, the
  // copy records the second path of the input.
  if (earlier && (isNew ? own : earlier.path !== path)) {
    const copy = { ...JSON.parse(earlier.value), path: isNew ? earlier.path : path, isAgain: false }
    const copying = append(store, [], { key: checked.newKey, before: '', value: JSON.stringify(copy) })
    // Without new plants the import has succeeded even if this fails, such as when another process adds the same note.
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
    // Other processes poll for the lock of a SQLite file: give them time to get it.
    await sleep(2)
  }
  const isOpen = isAgain && (again || isNew)
  return isOpen ? { key, before, value: JSON.stringify({ ...JSON.parse(before), isWhole: true }) } : undefined
}

/** Appends a batch and changes the note. Rejects with InputError or CommandError. */
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
 * Finds the import that an input continues. With --again: the longest interrupted import with --again. Otherwise: the
 * longest match; among equals, the first with no fewer valid plants than now, or else the first, because copies come
 * later. `matches` is sorted by end, then like `notes`. Throws CommandError if the imported part has changed.
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
