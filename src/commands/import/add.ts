// Adds the new plants of a checked input. Each batch updates the progress in the same transaction.
import { setTimeout as sleep } from 'node:timers/promises'
import { CommandError, count, separate } from '../../cli/console.ts'
import type { Entry, NoteChange, Outcome, Store } from '../../store/engine.ts'
import { StoreUnavailable } from '../../store/errors.ts'
import type { Checked, Match, Note } from './check.ts'
import { InputError } from './input.ts'

/** `path`: of the input; `earlier`: the import to continue; `again`: the option --again. */
type Target = { path: string | undefined; store: Store; earlier: Match | undefined; again: boolean }
/** Receives the outcomes of a batch, and the number of its last plant. */
type OnBatch = (outcomes: Outcome[], last: number) => void

/**
 * Appends the plants after the end of the earlier import. If the import began with --again, resolves to the change that
 * closes its note, to be made after the results are shown: until then, the same command continues this import.
 */
export async function addPlants(checked: Checked, target: Target, onBatch: OnBatch) {
  const { path, store, earlier, again } = target
  const isAgain = earlier?.isOpen ? earlier.isAgain : again
  const order = (checked.notes.at(-1)?.order ?? 0) + 1
  /** The value of the note of this import ('' before the first batch), and the number of plants in it. */
  let [before, done] = ['', earlier?.plants ?? 0]
  const left = checked.batches.filter(({ valid }) => valid > done)
  // Without new plants, the note of the last batch records the path, and replaces the note of an interrupted import.
  for (const batch of left.length > 0 ? left : checked.batches.slice(-1)) {
    const isOpen = isAgain || batch !== checked.batches.at(-1)
    const date = new Date().toISOString()
    const value = JSON.stringify({ path, ...batch, order, date, isOpen, isAgain } satisfies Note)
    const changes = [{ key: checked.newKey, before, value }]
    // Also an earlier note that stays as it is must exist: a fail-over may have lost it, with its plants.
    if (earlier && before === '') changes.push(close(earlier))
    onBatch(await append(store, checked.spool.readPlants(done, batch.valid), changes), batch.valid)
    before = value
    done = batch.valid
    // Other processes poll for the lock of a SQLite file: give them time to get it.
    await sleep(2)
  }
  // Without valid records there is no batch, and no note.
  return isAgain && before !== '' ? close({ key: checked.newKey, value: before }) : undefined
}

function close({ key, value: before }: Pick<Match, 'key' | 'value'>): NoteChange {
  return { key, before, value: JSON.stringify({ ...JSON.parse(before), isOpen: false }) }
}

/** Appends a batch and changes the notes. Rejects with InputError or CommandError. */
export async function append(store: Store, entries: Entry[], notes: NoteChange[]): Promise<Outcome[]> {
  try {
    return await store.log.append(entries, { notes })
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    const now = await store.notes().catch(() => undefined)
    // The same command, run meanwhile, closes the same note.
    if (entries.length === 0 && notes.every(({ key, value }) => now?.get(key) === value)) return []
    const isChanged = now && notes.some(({ key, before }) => (now.get(key) ?? '') !== before)
    if (error.outcome === 'nothing-added' && isChanged)
      throw new InputError(
        'another import of this input (or of an input with the same first record) is running: wait for it to finish, then run the same command without --again',
      )
    const isOpen = entries.length > 0 || error.outcome === 'nothing-added'
    const advice = isOpen ? 'run the same command to continue' : 'all plants were added'
    throw new CommandError(`the import was interrupted: ${error.message}; ${advice}`)
  }
}

/**
 * Finds the import that an input continues. With --again: the longest interrupted import with --again. Otherwise: of the
 * longest matches, the one that accepted the most plants. `matches` is sorted by end. Throws CommandError or InputError
 * if the input has changed, or was imported with different options.
 */
export function findEarlier({ notes, matches }: Checked, path: string | undefined, again: boolean) {
  const ofPath = again || path === undefined ? [] : notes.filter((note) => note.path === path)
  // An interrupted import with --again does not replace the import before it: the input must start with both.
  const latest = [ofPath.at(-1), ofPath.findLast((note) => !isInterruptedAgain(note))]
  const changed = latest.find((note) => note && !matches.some(({ key }) => key === note.key))
  if (changed)
    throw new CommandError(
      `${path} no longer starts with what was imported on ${changed.date}: import only the new records, or all with --again`,
    )
  const longest = matches.toSorted((one, other) => other.bytes - one.bytes || other.valid - one.valid)
  const earlier = again ? matches.findLast(isInterruptedAgain) : longest[0]
  if (earlier && earlier.valid < earlier.plants)
    throw new InputError(
      `was imported before with different options, which accepted ${count(earlier.valid, 'record')}, not ${separate(earlier.plants)}: use the same options${again ? '' : ', or add all with --again'}`,
    )
  return earlier
}

/** True for an import with --again that is running or was interrupted. */
const isInterruptedAgain = ({ isOpen, isAgain }: Note) => isOpen && isAgain
