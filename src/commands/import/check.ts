// Reads and checks a whole input before anything is added. Stores its plants and rejects in a temporary database.
import { DatabaseSync } from 'node:sqlite'
import { listFields, type NewPlant } from '../../../schemas/plant.ts'
import type { Progress } from '../../cli/console.ts'
import { serializeItem } from '../../plants/item.ts'
import type { Entry, Store } from '../../store/engine.ts'
import { makePlantReader } from './plants.ts'
import { type InputRecord, readRecords, type Source } from './records.ts'

export type Checked = Awaited<ReturnType<typeof checkInput>>
/** `onFault` receives each invalid record, and its fault. */
type Reporter = { progress: Progress; onFault(record: InputRecord, fault: string): void }

/** The plants up to number `valid`, added in one transaction; `bytes`, `hash`: size and SHA-256 (hex) of their input. */
type Batch = { valid: number; bytes: number; hash: string }

/**
 * The progress of one import: its last batch. The store keeps it permanently. If a later input starts with the same
 * bytes, its import skips them, and has a separate note. `path`: absent for a pipe; `order`: greater than in all earlier
 * notes; `date`: of the batch; `isOpen`: the import is running or was interrupted; `isAgain`: it began with --again.
 *
 * The first batch creates the note, each batch updates it, and the last one closes it, in the same transaction; with
 * --again, it is closed after the results are shown. The first batch also closes the open note that it continues. Each
 * change requires the value before it, so that only one of two concurrent imports of an input succeeds.
 */
export type Note = Batch & {
  path?: string | undefined
  order: number
  date: string
  isOpen: boolean
  isAgain: boolean
}
/** A note as it is stored: its `value` is JSON. */
type StoredNote = Note & { key: string; value: string }
/** A note that matches a prefix of the input, and the numbers of plants and of conflicts in the prefix. */
export type Match = StoredNote & { plants: number; conflicts: number }

/**
 * Checks all records. `plants`: number of valid records; `conflicts`: number of these with a conflicting id; `matches`:
 * earlier imports of a prefix; `newKey`: key of a new import's note; `spool`: the records. Rejects with InputError.
 */
export async function checkInput(source: Source, store: Store | undefined, reporter: Reporter) {
  const readPlant = makePlantReader(source.form)
  const spool = makeSpool()
  const notes = await readNotes(store)
  const notesByEnd = Map.groupBy(notes, ({ bytes }) => bytes)
  const checked = { records: 0, plants: 0, conflicts: 0, newKey: '' }
  const matches: Match[] = []
  const batches: Batch[] = []
  for await (const { records, hashTo } of readRecords(source)) {
    /** Plants; faults; undefined for the header row. */
    const reads = records.map(readPlant)
    const ids = reads.flatMap((read) => (typeof read === 'object' ? (read.id ?? []) : []))
    const stored = ids.length > 0 ? await store?.find(ids) : undefined
    /** The number of the last plant to add in this chunk, and the offset of its end. */
    let [valid, bytes] = [0, 0]
    for (const [index, record] of records.entries()) {
      const { text, end } = record
      const read = reads[index]
      const isPlant = typeof read === 'object'
      if (isPlant) checked.plants++
      const fault = isPlant ? spool.addPlant(checked.plants, read, stored) : read
      if (fault !== undefined || read === undefined) spool.addReject(text)
      if (read === undefined) continue
      checked.records++
      checked.newKey ||= nameNote(notes, hashTo(end))
      if (fault !== undefined) reporter.onFault(record, fault)
      else [valid, bytes] = [checked.plants, end]
      if (fault === conflict) checked.conflicts++
      // Also at the end of an invalid record: it may have been valid with other options.
      const same = notesByEnd.get(end)?.filter(({ hash }) => hash === hashTo(end)) ?? []
      matches.push(...same.map((note) => ({ ...note, plants: checked.plants, conflicts: checked.conflicts })))
    }
    if (bytes > 0) batches.push({ valid, bytes, hash: hashTo(bytes) })
    reporter.progress.show(checked.records, undefined, 'record')
    await reporter.progress.written()
  }
  return { ...checked, notes, matches, batches, spool }
}

/** Reads the notes in the order in which their imports began. */
async function readNotes(store: Store | undefined): Promise<StoredNote[]> {
  const values = [...((await store?.notes()) ?? [])]
  const notes = values.map(([key, value]): StoredNote => ({ ...JSON.parse(value), key, value }))
  return notes.toSorted((one, other) => one.order - other.order)
}

/** Derives the key of a note from the first record and the note before: concurrent imports of one input get the same. */
function nameNote(notes: StoredNote[], firstHash: string): string {
  const start = `import/${firstHash}/`
  return start + (notes.findLast(({ key }) => key.startsWith(start))?.order ?? 0)
}

const conflict = `a plant with this id already exists with a different ${listFields('or')}`

/**
 * Stores records in a temporary database, which SQLite deletes. Conflicting plants have numbers, too, because an import
 * with other options may have added them. The cache is larger than the default, because ids may be in any order.
 */
function makeSpool() {
  const db = new DatabaseSync('')
  db.exec(`PRAGMA journal_mode = OFF; PRAGMA cache_size = -16000; BEGIN;
    CREATE TABLE plants (number INTEGER PRIMARY KEY, item TEXT NOT NULL, id INTEGER);
    CREATE INDEX ids ON plants (id) WHERE id IS NOT NULL;
    CREATE TABLE rejects (text BLOB NOT NULL)`)
  const insert = db.prepare('INSERT INTO plants VALUES (?, ?, ?)')
  const insertReject = db.prepare('INSERT INTO rejects VALUES (?)')
  const find = db.prepare('SELECT item FROM plants WHERE id = ?')
  const select = db.prepare('SELECT item, id FROM plants WHERE number > ? AND number <= ?')
  return {
    /** Stores a plant, or returns a fault if its id belongs to a different one, in the store or in an earlier record. */
    addPlant(number: number, plant: NewPlant, stored?: Map<number, string>): string | undefined {
      const { id = null } = plant
      const item = serializeItem(plant)
      const known = id === null ? item : (stored?.get(id) ?? find.get(id)?.item ?? item)
      if (known === item) insert.run(number, item, id)
      return known === item ? undefined : conflict
    },
    addReject: (latin1: string) => void insertReject.run(Buffer.from(latin1, 'latin1')),
    /** Returns the plants with the numbers `after` + 1 to `last`. */
    readPlants: (after: number, last: number) =>
      select.all(after, last).map(({ item, id }) => ({ item, id: id ?? undefined }) as Entry),
    /** Yields the header row and the invalid records, as a file in the format of the input. */
    *readRejects(format: string) {
      let before = '[\n'
      for (const { text } of db.prepare('SELECT text FROM rejects').iterate()) {
        if (format === 'json') yield before
        yield text
        before = ',\n'
      }
      if (format === 'json') yield '\n]\n'
    },
  }
}
