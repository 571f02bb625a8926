// The first pass over an input: reads all of it, and decides everything before anything is added.
import { DatabaseSync } from 'node:sqlite'
import { listShown, type NewPlant } from '../../../schemas/plant.ts'
import type { Fault } from '../../../schemas/problem.ts'
import { serializeItem } from '../../plants/item.ts'
import type { Store } from '../../store/engine.ts'
import type { Form } from './form.ts'
import { type Input, makePrefix } from './input.ts'
import type { NoteRow } from './notes.ts'
import { PlantReader } from './plants.ts'
import { type InputRecord, splitArray, splitLines } from './records.ts'
import type { makeRejects, Reason } from './rejects.ts'
import { splitRows } from './rows.ts'

export type Source = { input: Input; form: Form }
type Item = { record: InputRecord; plant?: NewPlant; faults?: Fault[] }
/**
 * `plants`: of all batches so far; `end`: the offset behind the last of them; `hash`: SHA-256 (hex) of the input up to
 * there, '' if this batch has none.
 */
export type Batch = { items: Item[]; plants: number; end: number; hash: string }

/**
 * Reads the records between two offsets, batch by batch. `visit`: called for each plant with a function that returns the
 * hash of the input up to there, the offset behind it, and the number of plants.
 */
export async function* readBatches(
  { input, form }: Source,
  [from, to]: [number, number],
  visit: (hash: () => string, end: number, plants: number) => void,
  reader = new PlantReader(form),
): AsyncGenerator<Batch> {
  const prefix = makePrefix()
  const chunks = prefix.follow(input.read())
  const lines = form.format === 'json' ? splitArray(chunks) : splitLines(chunks)
  let [end, plants] = [from, 0]
  const hash = () => prefix.hash(end)
  for await (const group of form.format === 'csv' ? splitRows(lines, form) : lines) {
    const [items, before]: [Item[], number] = [[], plants]
    for (const record of group) {
      const read = record.end > to ? undefined : reader.read(record, record.end <= from)
      if (read) items.push({ record, ...read })
      if (!read?.plant) continue
      end = record.end
      visit(hash, end, ++plants)
    }
    yield { items, plants, end, hash: plants > before ? hash() : '' }
  }
}

const conflict: Reason = {
  code: 'id-conflict',
  detail: `is the id of a plant that already exists with a different ${listShown('or')}`,
  pointer: '/id',
}

/** A note of what the input begins with, and the number of plants up to there. */
export type Match = NoteRow & { plants: number }

export type Checked = Awaited<ReturnType<typeof checkInput>>

/**
 * Resolves to the numbers of records, of plants (records without a fault) and of those whose ids conflict, to the end and
 * the hash of the last batch with plants, and to the notes of what the input begins with.
 */
export async function checkInput(
  source: Source & { store: Store | undefined; rows: NoteRow[] },
  rejects: ReturnType<typeof makeRejects>,
  onBatch: (records: number) => void,
) {
  const { form, store, rows } = source
  const reader = new PlantReader(form)
  const findConflicts = makeJudge(store)
  const ends = new Set(rows.map(({ note }) => note.bytes))
  const matching: Match[] = []
  let checked = { records: 0, plants: 0, conflicts: 0, end: 0, hash: '', matching }
  const visit = (hash: () => string, end: number, plants: number) => {
    if (!ends.has(end)) return
    const same = rows.filter(({ note }) => note.bytes === end && note.hash === hash())
    matching.push(...same.map((row) => ({ ...row, plants })))
  }
  for await (const { items, ...batch } of readBatches(source, [0, Infinity], visit, reader)) {
    const conflicts = await findConflicts(items)
    for (const item of items) {
      const faults = conflicts.has(item) ? [reader.locate(conflict)] : item.faults
      const [start, between] = form.format === 'json' ? ['[\n', ',\n'] : [reader.headerText, '']
      if (faults) await rejects.add(item.record, faults, start, between)
    }
    checked = {
      ...checked,
      ...(batch.hash && batch),
      records: checked.records + items.length,
      conflicts: checked.conflicts + conflicts.size,
    }
    onBatch(checked.records)
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
