// The first pass of an import: reads all of the input, and decides everything before anything is added.
import { DatabaseSync } from 'node:sqlite'
import { listShown } from '../../../schemas/plant.ts'
import { serializeItem } from '../../plants/item.ts'
import type { Outcome, Store } from '../../store/engine.ts'
import { type Item, type Reading, readBatches } from './batches.ts'
import type { NoteRow } from './progress.ts'
import type { Reason, Rejects } from './rejects.ts'

type Counts = { records: number; plants: number; invalid: number; conflicts: number }

/**
 * `records`: all of them; `plants`: those without a fault, `conflicts` included; `end`, `hash`: of the input up to the
 * last plant; `matching`: the notes of what the input begins with, and the counts up to there.
 */
export type Checked = Counts & { end: number; hash: string; matching: ({ row: NoteRow } & Counts)[] }

type Options = {
  store: Store | undefined
  rows: NoteRow[]
  rejects: Rejects
  signal: AbortSignal
  onProgress: (records: number) => void
}

const conflict: Reason = {
  code: 'id-conflict',
  detail: `is the id of a plant that already exists with a different ${listShown('or')}`,
  pointer: '/id',
}

export async function checkInput(reading: Reading, options: Options): Promise<Checked> {
  const { store, rows, rejects, signal, onProgress } = options
  const { form, reader } = reading
  const cuts = new Set(rows.map(({ note }) => note.bytes))
  const judge = makeJudge(store)
  const counts: Counts = { records: 0, plants: 0, invalid: 0, conflicts: 0 }
  const checked: Checked = { ...counts, end: 0, hash: '', matching: [] }
  for await (const { items, plants, end, hash, cut } of readBatches(reading, 0, cuts)) {
    const outcomes = await judge(items)
    for (const [index, { record, faults }] of items.entries()) {
      if (faults) await rejects.add(record, faults, form, reader.header)
      else if (outcomes[index] === 'conflict')
        await rejects.add(record, [reader.locate(conflict)], form, reader.header)
    }
    counts.records += items.length
    counts.plants += plants
    counts.invalid += items.length - plants
    counts.conflicts += outcomes.filter((outcome) => outcome === 'conflict').length
    if (plants > 0) Object.assign(checked, { end, hash })
    if (cut)
      for (const row of rows.filter(({ note }) => note.bytes === cut.end && note.hash === cut.hash))
        checked.matching.push({ row, ...counts })
    signal.throwIfAborted()
    onProgress(counts.records)
  }
  return { ...checked, ...counts }
}

/** Makes a function that predicts what becomes of plants with ids: they are compared with earlier ones and the store. */
function makeJudge(store: Store | undefined): (items: Item[]) => Promise<(Outcome | undefined)[]> {
  // A temporary file that SQLite removes by itself.
  const known = new DatabaseSync('')
  known.exec(
    'PRAGMA journal_mode = OFF; CREATE TABLE items (id INTEGER PRIMARY KEY, item TEXT NOT NULL); BEGIN',
  )
  const insert = known.prepare('INSERT INTO items VALUES (?, ?) ON CONFLICT DO NOTHING')
  const find = known.prepare('SELECT item FROM items WHERE id = ?')
  return async (items) => {
    const ids = items.flatMap(({ plant }) => plant?.id ?? [])
    if (ids.length === 0) return []
    for (const [id, item] of (await store?.find(ids)) ?? []) insert.run(id, item)
    return items.map(({ plant }) => {
      if (plant?.id === undefined) return undefined
      const item = serializeItem(plant)
      if (insert.run(plant.id, item).changes === 1) return 'added'
      return find.get(plant.id)?.item === item ? 'replayed' : 'conflict'
    })
  }
}
