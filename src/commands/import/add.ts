// The second pass over an input: appends what is new, each batch with the progress in the same transaction.
import { setTimeout as sleep } from 'node:timers/promises'
import { CommandError } from '../../cli/console.ts'
import { serializeItem } from '../../plants/item.ts'
import type { Entry, NoteChange, Outcome, Store } from '../../store/engine.ts'
import { StoreUnavailable } from '../../store/errors.ts'
import type { CheckedSource } from './check.ts'
import { InputError } from './input.ts'
import { type Match, type Note, nameNote } from './notes.ts'
import { makePlantReader } from './plants.ts'
import { readRecords } from './records.ts'

/** `earlier`: the import to continue; `again`: --again is set. */
type Target = { store: Store; earlier: Match | undefined; again: boolean }

/**
 * Appends the plants after the end of the earlier import; yields the outcomes of each batch. Throws InputError if the
 * input has changed since it was checked.
 */
export async function* addPlants({ input, form, checked }: CheckedSource, { store, earlier, again }: Target) {
  // An interrupted import reuses its note, so that of two concurrent imports of one input only one succeeds.
  const own = earlier?.isWhole ? undefined : earlier
  const { path } = input
  const isAgain = own?.isAgain ?? again
  const newKey = nameNote(checked.notes, checked.firstHash)
  const key = own?.key ?? newKey
  // A note of the interrupted import stays, so that the file at its path can continue, too.
  if (own && own.path !== path) {
    const copy = JSON.stringify({ ...JSON.parse(own.value), isAgain: false })
    await append(store, [], { key: newKey, before: '', value: copy })
  }
  const readPlant = makePlantReader(form)
  let [before, hash] = [own?.value ?? '', '']
  for await (const { records, hashTo } of readRecords(input, form)) {
    const entries: Entry[] = []
    let bytes = earlier?.bytes ?? 0
    for (const record of records) {
      const plant = readPlant(record)
      if (typeof plant !== 'object' || record.end <= bytes || record.end > checked.end) continue
      entries.push({ item: serializeItem(plant), id: plant.id })
      bytes = record.end
    }
    if (entries.length === 0) continue
    hash = hashTo(bytes)
    const isWhole = hash === checked.hash
    const note: Note = { path, bytes, hash, date: new Date().toISOString(), isWhole, isAgain }
    const value = JSON.stringify(note)
    yield await append(store, entries, { key, before, value })
    before = value
    // Gives other processes, which poll for the lock of a SQLite file, a chance to get it.
    await sleep(2)
  }
  if (hash !== checked.hash)
    throw new InputError('was changed while it was imported: run the same command again')
}

async function append(store: Store, entries: Entry[], note: NoteChange): Promise<Outcome[]> {
  try {
    return await store.log.append(entries, { note })
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    const { key, before, value } = note
    const now = (await store.notes(key).catch(() => undefined))?.get(key) ?? before
    if (now !== before && now !== value)
      throw new InputError('another import of this input is running: wait until it ends')
    throw new CommandError(`the import was cut short: ${error.message}; run the same command to continue`)
  }
}
