// The second pass over an input: appends what is new, each batch with the progress in the same transaction.
import { setTimeout as sleep } from 'node:timers/promises'
import { CommandError } from '../../cli/console.ts'
import { serializeItem } from '../../plants/item.ts'
import type { NoteChange, Outcome, Store } from '../../store/engine.ts'
import { StoreUnavailable } from '../../store/errors.ts'
import { type Batch, type Checked, type Match, readBatches, type Source } from './check.ts'
import { type Note, type NoteRow, nameNote } from './notes.ts'
import { InputError } from './records.ts'

const roomEveryMs = 25
const roomMs = 2

/** `earlier`: the import that is continued; `outcomes`: raised with each batch. */
type Addition = Source & {
  name: string
  store: Store
  rows: NoteRow[]
  checked: Checked
  earlier: Match | undefined
  again: boolean
  outcomes: Record<Outcome, number>
  signal: AbortSignal
  onBatch: (plants: number) => void
}

/** Appends all plants behind the earlier import. The next batch is read while one is appended. */
export async function addPlants(addition: Addition): Promise<void> {
  const { rows, checked, earlier, signal, onBatch } = addition
  // An import that was interrupted goes on in its note, so that two of one input cannot both change it.
  const own = earlier?.note.isWhole ? undefined : earlier
  const { path, isAgain } = own?.note ?? { path: addition.input.path, isAgain: addition.again }
  let [key, before, last] = [own?.key, own?.value ?? '', '']
  let [underWay, roomAtMs] = [Promise.resolve(), performance.now()]
  const add = async ({ items, plants, end, hash }: Batch) => {
    const isWhole = hash === checked.hash
    const note: Note = { path, bytes: end, hash, date: new Date().toISOString(), isWhole, isAgain }
    const change = { key: key as string, before, value: JSON.stringify(note) }
    await append(addition, items, change)
    before = change.value
    onBatch(plants)
    // Other processes poll for the lock of a SQLite file.
    if (performance.now() - roomAtMs < roomEveryMs) return
    await sleep(roomMs)
    roomAtMs = performance.now()
  }
  const range: [number, number] = [earlier?.note.bytes ?? 0, checked.end]
  const nameOnce = (hash: () => string) => {
    key ??= nameNote(rows, hash())
  }
  try {
    for await (const batch of readBatches(addition, range, nameOnce)) {
      await underWay
      signal.throwIfAborted()
      if (batch.hash === '') continue
      last = batch.hash
      underWay = add(batch)
      underWay.catch(() => {})
    }
  } finally {
    // Let the current batch end in any case.
    await underWay
  }
  if (last !== checked.hash)
    throw new InputError('was changed while it was imported: run the same command again')
}

async function append(
  { name, store, outcomes }: Addition,
  items: Batch['items'],
  note: NoteChange,
): Promise<void> {
  const entries = items.flatMap(({ plant }) => (plant ? { item: serializeItem(plant), id: plant.id } : []))
  try {
    for (const outcome of await store.log.append(entries, { note })) outcomes[outcome]++
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    const now = await store.notes.read(note.key).catch(() => new Map<string, string>())
    const isTaken = ![note.before, note.value].includes(now.get(note.key) ?? note.before)
    if (isTaken) throw new CommandError(`another import of ${name} is running: wait until it ends`)
    throw new CommandError(`the import was cut short: ${error.message}; run the same command to continue`)
  }
}
