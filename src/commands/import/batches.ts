// Reads an input as batches of records, the same ones each time: the check and the adding pass see the same.
import type { NewPlant } from '../../../schemas/plant.ts'
import type { Fault } from '../../../schemas/problem.ts'
import { detectForm, type Form, type FormOptions } from './form.ts'
import { type Input, Prefix } from './input.ts'
import { type FieldOptions, PlantReader } from './plants.ts'
import { type Groups, type InputRecord, splitArray, splitLines } from './records.ts'
import { splitRows } from './rows.ts'

export type RecordOptions = FormOptions & FieldOptions

/** A record is a plant, or it has faults. */
export type Item = { record: InputRecord } & (
  | { plant: NewPlant; faults?: undefined }
  | { plant?: undefined; faults: Fault[] }
)

/** `plants`: their number; `end`: the offset behind the last of them; `hash`: SHA-256 (hex) of the input up to there. */
export type Batch = {
  items: Item[]
  plants: number
  end: number
  hash: string
  cut?: { end: number; hash: string }
}

/** Records in one transaction: it holds the lock of the database for some tens of milliseconds. */
const batchRecords = 2500
const batchBytes = 2 ** 20

export type Reading = { form: Form; reader: PlantReader; prefix: Prefix; groups: Groups }

/** Begins to read an input. Throws InputError if it is in a form that cannot be imported. */
export async function readInput(input: Input, options: RecordOptions): Promise<Reading> {
  const { head, chunks } = await input.read()
  const form = detectForm(head, options)
  const prefix = new Prefix()
  const all = prefix.follow(chunks)
  const lines = () => splitLines(all)
  const groups = { ndjson: lines, json: () => splitArray(all), csv: () => splitRows(lines(), form) }[
    form.format
  ]()
  return { form, reader: new PlantReader(form, options), prefix, groups }
}

/**
 * Reads the records behind an offset. The first batch with a plant has only that one. A batch ends at a record that ends
 * at one of `cuts`, with the hash of the input up to there.
 */
export async function* readBatches(
  { reader, prefix, groups }: Reading,
  from: number,
  cuts: ReadonlySet<number>,
) {
  const make = (end: number): Batch => ({ items: [], plants: 0, end, hash: '' })
  let batch = make(from)
  let start = from
  let most = 1
  for await (const group of groups) {
    for (const record of group) {
      const { end } = record
      const isCut = cuts.has(end)
      const read = end > from || !reader.isReady ? reader.read(record) : undefined
      if (read && end > from) {
        batch.items.push({ record, ...read })
        if ('plant' in read) {
          batch.plants++
          batch.end = end
        }
      }
      if (!isCut && batch.items.length < most && end - start < batchBytes) continue
      if (batch.plants > 0) {
        batch.hash = prefix.hash(batch.end)
        most = batchRecords
      }
      if (isCut) batch.cut = { end, hash: prefix.hash(end) }
      yield batch
      batch = make(batch.end)
      start = end
    }
    // Later bytes may be hashed before the batch is full.
    if (batch.plants > 0) batch.hash = prefix.hash(batch.end)
  }
  yield batch
}
