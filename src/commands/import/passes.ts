// The two passes over an input: the first checks all of it and decides everything, the second appends what is new.
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { listShown, type NewPlant } from '../../../schemas/plant.ts'
import type { Fault } from '../../../schemas/problem.ts'
import { CommandError } from '../../cli/console.ts'
import { serializeItem } from '../../plants/item.ts'
import type { Outcome, Store } from '../../store/engine.ts'
import { StoreUnavailable } from '../../store/errors.ts'
import type { Form } from './form.ts'
import { type Input, Prefix } from './input.ts'
import { type FieldOptions, PlantReader } from './plants.ts'
import { type Note, type NoteRow, noteKey } from './progress.ts'
import { InputError, type InputRecord, splitArray, splitLines } from './records.ts'
import type { Reason, Rejects } from './rejects.ts'
import { splitRows } from './rows.ts'

/** `rows`: the notes of all imports. */
export type Pass = {
  name: string
  input: Input
  form: Form
  fields: FieldOptions
  store: Store | undefined
  rows: NoteRow[]
  signal: AbortSignal
}

type Item = { record: InputRecord; plant?: NewPlant; faults?: Fault[] }
/** `plants`: their number; `end`: the offset behind the last of them; `hash`: SHA-256 (hex) of the input up to there. */
type Batch = { items: Item[]; plants: number; end: number; hash: string }

/** Records in one transaction: it holds the lock of the database for some tens of milliseconds. */
const batchRecords = 2500
const batchBytes = 2 ** 20

/** A note of what the input begins with, where a record ends, and the number of plants up to there. */
type Match = NoteRow & { plants: number }

/** Reads the records between two offsets; the first batch with a plant has only that one. `matching`: gets the matches. */
async function* readBatches(
  { input, form, rows }: Pass,
  reader: PlantReader,
  range: [number, number],
  matching: Match[],
) {
  const [from, to] = range
  const prefix = new Prefix()
  const chunks = prefix.follow(input.read())
  const lines = form.format === 'json' ? splitArray(chunks) : splitLines(chunks)
  const ends = new Set(rows.map(({ note }) => note.bytes))
  const make = (end: number): Batch => ({ items: [], plants: 0, end, hash: '' })
  let [batch, start, most, plants] = [make(from), from, 1, 0]
  // Bytes behind the last plant may be hashed before the batch is full.
  const hash = () => {
    if (batch.plants > 0) batch.hash = prefix.hash(batch.end)
  }
  for await (const group of form.format === 'csv' ? splitRows(lines, form) : lines) {
    for (const record of group) {
      const { end } = record
      if (end > to) continue
      const read = reader.read(record, end <= from)
      if (read) batch.items.push({ record, ...read })
      if (read?.plant) {
        plants++
        batch.plants++
        batch.end = end
      }
      if (ends.has(end)) {
        hash()
        const matches = rows.filter(({ note }) => note.bytes === end && note.hash === prefix.hash(end))
        matching.push(...matches.map((row) => ({ ...row, plants })))
      }
      if (batch.items.length < most && end - start < batchBytes) continue
      hash()
      if (batch.plants > 0) most = batchRecords
      yield batch
      batch = make(batch.end)
      start = end
    }
    hash()
  }
  yield batch
}

const conflict: Reason = {
  code: 'id-conflict',
  detail: `is the id of a plant that already exists with a different ${listShown('or')}`,
  pointer: '/id',
}

export type Checked = Awaited<ReturnType<typeof checkInput>>

/**
 * Resolves to the counts of all records, of valid ones and of those whose ids conflict, to the offset behind the last
 * plant and the hash up to there, and to the notes of what the input begins with.
 */
export async function checkInput(pass: Pass, rejects: Rejects, onProgress: (records: number) => void) {
  const { name, form, store, signal } = pass
  const reader = new PlantReader(form, pass.fields)
  const judge = makeJudge(store)
  const checked = { records: 0, plants: 0, conflicts: 0, end: 0, hash: '', matching: [] as Match[] }
  for await (const { items, plants, end, hash } of readBatches(
    pass,
    reader,
    [0, Infinity],
    checked.matching,
  )) {
    const conflicts = await judge(items)
    for (const item of items) {
      const faults = conflicts.has(item) ? [reader.locate(conflict)] : item.faults
      if (faults)
        await rejects.add(
          name,
          item.record,
          faults,
          form.format === 'json' ? ['[\n', ',\n'] : [reader.header, ''],
        )
    }
    checked.records += items.length
    checked.plants += plants
    checked.conflicts += conflicts.size
    if (plants > 0) Object.assign(checked, { end, hash })
    signal.throwIfAborted()
    onProgress(checked.records)
  }
  return checked
}

/** Makes a function that finds plants whose ids exist with another plant, in the store or in an earlier record. */
function makeJudge(store: Store | undefined): (items: Item[]) => Promise<Set<Item>> {
  // A temporary file that SQLite removes by itself.
  const known = new DatabaseSync('')
  known.exec(
    'PRAGMA journal_mode = OFF; CREATE TABLE items (id INTEGER PRIMARY KEY, item TEXT NOT NULL); BEGIN',
  )
  const insert = known.prepare('INSERT INTO items VALUES (?, ?) ON CONFLICT DO NOTHING')
  const find = known.prepare('SELECT item FROM items WHERE id = ?')
  return async (items) => {
    const ids = items.flatMap(({ plant }) => plant?.id ?? [])
    if (store && ids.length > 0) for (const [id, item] of await store.find(ids)) insert.run(id, item)
    const conflicts = items.filter(({ plant }) => {
      if (plant?.id === undefined) return false
      const item = serializeItem(plant)
      return insert.run(plant.id, item).changes === 0 && find.get(plant.id)?.item !== item
    })
    return new Set(conflicts)
  }
}

const changed = 'was changed while it was imported: run the same command again'
const roomEveryMs = 25
const roomMs = 2

/** `earlier`: the import that is continued; `skipInvalid`: invalid records were found and are left out. */
export type Addition = {
  checked: Checked
  earlier: Match | undefined
  again: boolean
  skipInvalid: boolean
  outcomes: Record<Outcome, number>
  onProgress: (plants: number) => void
}

/** Appends all plants behind the earlier import, each batch with the progress. The next is read meanwhile. */
export async function addPlants(pass: Pass & { store: Store }, addition: Addition): Promise<void> {
  const { checked, earlier, skipInvalid, onProgress } = addition
  const append = makeAppend(pass, addition)
  let [underWay, plants, end, roomAtMs] = [Promise.resolve(), earlier?.plants ?? 0, 0, performance.now()]
  const add = async (batch: Batch) => {
    await append(batch)
    onProgress(plants)
    // Other processes poll for the lock of a SQLite file.
    if (performance.now() - roomAtMs < roomEveryMs) return
    await sleep(roomMs)
    roomAtMs = performance.now()
  }
  const reader = new PlantReader(pass.form, pass.fields)
  try {
    const range: [number, number] = [earlier?.note.bytes ?? 0, checked.end]
    for await (const batch of readBatches({ ...pass, rows: [] }, reader, range, [])) {
      const isOther = batch.end === checked.end && batch.plants > 0 && batch.hash !== checked.hash
      if (isOther || (batch.plants < batch.items.length && !skipInvalid)) throw new InputError(changed)
      await underWay
      pass.signal.throwIfAborted()
      plants += batch.plants
      end = batch.end
      if (batch.plants > 0) underWay = add(batch)
      underWay.catch(() => {})
    }
  } finally {
    // Let the current batch end in any case.
    await underWay
  }
  if (end !== checked.end) throw new InputError(changed)
}

/** Makes a function that appends a batch and changes the note of the import, whose key the first batch decides. */
function makeAppend(
  { name, input, store, rows }: Pass & { store: Store },
  { checked, earlier, again, outcomes }: Addition,
) {
  // An import that was interrupted goes on in its note, so that two of one input cannot both change it.
  const own = earlier?.note.isWhole ? undefined : earlier
  let [key, before] = [own?.key, own?.value ?? '']
  return async ({ items, end, hash }: Batch): Promise<void> => {
    key ??= noteKey(rows, hash)
    const { path, isAgain } = own?.note ?? { path: input.path, isAgain: again }
    const isWhole = end === checked.end
    const note: Note = { path, bytes: end, hash, date: new Date().toISOString(), isWhole, isAgain }
    const value = JSON.stringify(note)
    const entries = items.flatMap(({ plant }) => (plant ? { item: serializeItem(plant), id: plant.id } : []))
    try {
      for (const outcome of await store.log.append(entries, { note: { key, before, value } }))
        outcomes[outcome]++
      before = value
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      const now = (await store.notes.read(key).catch(() => new Map<string, string>())).get(key) ?? before
      if (now !== before && now !== value)
        throw new CommandError(`another import of ${name} is running: wait until it ends`)
      throw new CommandError(`the import was cut short: ${error.message}; run the same command to continue`)
    }
  }
}
