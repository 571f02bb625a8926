// Reads and checks all of an input before anything is added. Its plants and rejects are kept in a temporary database.
import { DatabaseSync } from 'node:sqlite'
import { listShown, type NewPlant } from '../../../schemas/plant.ts'
import type { Progress } from '../../cli/console.ts'
import { serializeItem } from '../../plants/item.ts'
import type { Entry, Store } from '../../store/engine.ts'
import { makePlantReader } from './plants.ts'
import { type InputRecord, readRecords, type Source } from './records.ts'

export type Checked = Awaited<ReturnType<typeof checkInput>>
/** `onFault` receives each invalid record, and why it is invalid. */
type Reporter = { progress: Progress; onFault(record: InputRecord, fault: string): void }

/**
 * The progress of one import, kept in the store for ever: an input that begins with the bytes of a note continues behind
 * them. `path`: absent for a pipe; `bytes`, `hash`: how much was consumed, and its SHA-256 (hex); `valid`: the number of
 * plants in it; `date`: of the last batch; `isAgain`: the import began with --again. The life of a note:
 *
 * 1. The first batch makes it, and each batch changes it, in the same transaction: `isWhole` is false. Only one of two
 *    imports of an input can do so, because each change names the value before.
 * 2. The last batch sets `isWhole`; with --again it is set once the results are shown.
 * 3. An import that was interrupted leaves it as it is. Whoever continues leaves a copy of it first: other inputs may begin
 *    with the same bytes. An input that is known already, at another path, leaves a copy with that path.
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

/** The plants up to the one with the number `last`, which are added together; `bytes` and `hash` as in a note. */
type Batch = { last: number; bytes: number; hash: string }

/**
 * Checks all records. `plants`: how many are valid; `conflicts`: how many of these conflict; `matches`: the earlier
 * imports whose bytes the input starts with; `newKey`: of the note of a new import; `kept`: the records. Throws InputError.
 */
export async function checkInput(source: Source, store: Store | undefined, reporter: Reporter) {
  const readPlant = makePlantReader(source.form)
  const kept = makeKeeper()
  const notes = await readNotes(store)
  const notesByEnd = Map.groupBy(notes, ({ bytes }) => bytes)
  const checked = { records: 0, plants: 0, conflicts: 0, newKey: '' }
  const [matches, batches]: [Match[], Batch[]] = [[], []]
  for await (const { records, hashTo } of readRecords(source)) {
    const plants = records.map(readPlant)
    const ids = plants.flatMap((plant) => (typeof plant === 'object' ? (plant.id ?? []) : []))
    const stored = store && ids.length > 0 ? await store.find(ids) : undefined
    let bytes = 0
    for (const [index, record] of records.entries()) {
      const { text, end } = record
      const plant = plants[index]
      const isPlant = typeof plant === 'object'
      const fault = isPlant ? kept.addPlant(plant, stored) : plant
      if (plant !== undefined && ++checked.records === 1) checked.newKey = nameNote(notes, hashTo(end))
      if (fault !== undefined) reporter.onFault(record, fault)
      if (fault !== undefined || plant === undefined) kept.addReject(text)
      checked.plants += Number(isPlant)
      checked.conflicts += Number(isPlant && fault !== undefined)
      if (isPlant) bytes = end
      // Also at the end of an invalid record, which may have been valid with other options.
      const same = notesByEnd.get(end)?.filter(({ hash }) => hash === hashTo(end)) ?? []
      matches.push(...same.map((note) => ({ ...note, ...checked })))
    }
    if (bytes > 0) batches.push({ last: checked.plants, bytes, hash: hashTo(bytes) })
    reporter.progress.show(checked.records, undefined, 'record')
    await reporter.progress.written()
  }
  return { ...checked, notes, matches, batches, kept }
}

const notePrefix = 'import/'

/** Reads the notes, those of one name in the order in which they were made. */
async function readNotes(store: Store | undefined): Promise<StoredNote[]> {
  const values = [...((await store?.notes(notePrefix)) ?? [])]
  const notes = values.map(([key, value]): StoredNote => ({ ...JSON.parse(value), key, value }))
  return notes.toSorted((one, other) => one.key.localeCompare(other.key, 'en', { numeric: true }))
}

/** Names the note of a new import by the hash up to the first record: two imports of one input get the same name. */
function nameNote(notes: StoredNote[], firstHash: string): string {
  const start = `${notePrefix}${firstHash}/`
  return start + notes.filter(({ key }) => key.startsWith(start)).length
}

const conflict = `a plant with this id already exists with a different ${listShown('or')}`

/**
 * Keeps records in a temporary database, whose file has no name. Plants are numbered from 1. The cache is larger than the
 * default, because ids may come in any order.
 */
function makeKeeper() {
  const db = new DatabaseSync('')
  db.exec(`PRAGMA journal_mode = OFF; PRAGMA cache_size = -16000; BEGIN;
    CREATE TABLE plants (number INTEGER PRIMARY KEY, item TEXT NOT NULL, id INTEGER);
    CREATE INDEX ids ON plants (id) WHERE id IS NOT NULL;
    CREATE TABLE rejects (text BLOB NOT NULL)`)
  const insert = db.prepare('INSERT INTO plants (item, id) VALUES (?, ?)')
  const insertReject = db.prepare('INSERT INTO rejects VALUES (?)')
  const find = db.prepare('SELECT item FROM plants WHERE id = ? ORDER BY number LIMIT 1')
  const select = db.prepare('SELECT item, id FROM plants WHERE number > ? AND number <= ?')
  return {
    /** Returns a fault if its id belongs to a different plant, in the store or in an earlier record. */
    addPlant(plant: NewPlant, stored?: Map<number, string>): string | undefined {
      const { id = null } = plant
      const item = serializeItem(plant)
      const known = id === null ? item : (stored?.get(id) ?? find.get(id)?.item ?? item)
      insert.run(item, id)
      return known === item ? undefined : conflict
    },
    addReject: (latin1: string) => void insertReject.run(Buffer.from(latin1, 'latin1')),
    /** The plants with the numbers `after` + 1 to `last`. */
    readPlants: (after: number, last: number) =>
      select.all(after, last).map(({ item, id }) => ({ item, id: id ?? undefined }) as Entry),
    /** The header row and the invalid records, as a file in the format of the input. */
    *readRejects(format: string) {
      let before = '[\n'
      for (const { text } of db.prepare('SELECT text FROM rejects').iterate()) {
        if (format === 'json') yield before
        yield text as Uint8Array
        before = ',\n'
      }
      if (format === 'json') yield '\n]\n'
    },
  }
}
