// The first pass over an input: checks all of it before anything is added.
import { DatabaseSync } from 'node:sqlite'
import { listShown, type NewPlant } from '../../../schemas/plant.ts'
import { serializeItem } from '../../plants/item.ts'
import type { Store } from '../../store/engine.ts'
import type { Form } from './form.ts'
import type { Input } from './input.ts'
import { type Match, readNotes } from './notes.ts'
import { makePlantReader } from './plants.ts'
import { type InputRecord, readRecords } from './records.ts'

export type Source = { input: Input; form: Form }
export type CheckedSource = Source & { checked: Awaited<ReturnType<typeof checkInput>> }
type Listener = { onFault(record: InputRecord, fault: string): void; onRecords(records: number): void }

const conflict = `id is the id of a plant that already exists with a different ${listShown('or')}`

/**
 * Checks all records. `plants`: how many are valid; `conflicts`: how many of these conflict; `matches`: the earlier
 * imports whose bytes the input starts with; `headerEnd`, `end`: offsets after the header row and the last plant;
 * `hash`, `firstHash`: of the input up to the end of the last plant, and of the first record. Throws InputError.
 */
export async function checkInput({ input, form }: Source, store: Store | undefined, listener: Listener) {
  const readPlant = makePlantReader(form)
  const findConflicts = makeConflictFinder(store)
  const notes = await readNotes(store)
  const notesByEnd = Map.groupBy(notes, ({ bytes }) => bytes)
  const checked = { records: 0, plants: 0, conflicts: 0, headerEnd: 0, end: 0, hash: '', firstHash: '' }
  const matches: Match[] = []
  for await (const { records, hashTo } of readRecords(input, form)) {
    const plants = records.map(readPlant)
    const conflicts = await findConflicts(plants)
    let isHashed = true
    const hashPlants = () => {
      if (!isHashed) checked.hash = hashTo(checked.end)
      isHashed = true
    }
    for (const [index, record] of records.entries()) {
      const plant = plants[index]
      if (plant === undefined) checked.headerEnd = record.end
      else if (++checked.records === 1) checked.firstHash = hashTo(record.end)
      if (typeof plant === 'string') listener.onFault(record, plant)
      if (typeof plant === 'object') {
        if (conflicts.has(plant)) listener.onFault(record, conflict)
        checked.end = record.end
        isHashed = false
        checked.plants++
      }
      // Also at the end of an invalid record, which may have been valid with other options.
      const ended = notesByEnd.get(record.end) ?? []
      if (ended.length > 0) hashPlants()
      const same = ended.filter(({ hash }) => hash === hashTo(record.end))
      matches.push(...same.map((note) => ({ ...note, plants: checked.plants })))
    }
    hashPlants()
    checked.conflicts += conflicts.size
    listener.onRecords(checked.records)
  }
  return { ...checked, notes, matches }
}

/** Makes a function that finds plants whose id belongs to a different plant, in the store or in an earlier record. */
function makeConflictFinder(store: Store | undefined) {
  // A temporary file that SQLite removes by itself.
  const known = new DatabaseSync('')
  known.exec(
    'PRAGMA journal_mode = OFF; CREATE TABLE items (id INTEGER PRIMARY KEY, item TEXT NOT NULL); BEGIN',
  )
  const insert = known.prepare('INSERT INTO items VALUES (?, ?) ON CONFLICT DO NOTHING')
  const find = known.prepare('SELECT item FROM items WHERE id = ?')
  return async (read: (NewPlant | string | undefined)[]): Promise<Set<NewPlant>> => {
    const plants = read.filter((one): one is Required<NewPlant> => typeof one === 'object' && 'id' in one)
    const ids = plants.map(({ id }) => id)
    if (store && ids.length > 0) for (const [id, item] of await store.find(ids)) insert.run(id, item)
    const isConflict = (plant: Required<NewPlant>, item = serializeItem(plant)) =>
      insert.run(plant.id, item).changes === 0 && find.get(plant.id)?.item !== item
    return new Set(plants.filter((plant) => isConflict(plant)))
  }
}

/** Yields the header row and the records that end at the offsets `invalid`, as a file in the format of the input. */
export async function* readRejects({ input, form, checked }: CheckedSource, invalid: number[]) {
  const isJson = form.format === 'json'
  let count = 0
  for await (const { records } of readRecords(input, form))
    for (const { text, end } of records) {
      const isInvalid = end === invalid[count]
      const before = isJson ? (count === 0 ? '[\n' : ',\n') : ''
      if (isInvalid || end <= checked.headerEnd) yield Buffer.from(before + text, 'latin1')
      if (isInvalid) count++
    }
  if (isJson) yield '\n]\n'
}
