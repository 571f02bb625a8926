// One pass through an input: reads and checks its records, and appends them to the log in batches, one by one. The next
// is read meanwhile, and appended only once the outcome of the last is certain.
import { setTimeout as sleep } from 'node:timers/promises'
import { listShown } from '../../../schemas/plant.ts'
import { type Entry, type Outcome, type PlantLog, StoreUnavailable } from '../../store/store.ts'
import {
  defaultBatchPlants,
  defaultPatienceMs,
  type ImportOptions,
  type ImportResult,
} from './import-options.ts'
import type { ImportProgress, Position } from './import-progress.ts'
import type { Input } from './input.ts'
import { InputError } from './input-error.ts'
import type { InputRecord } from './record.ts'
import type { Records } from './records.ts'
import type { Reason, Rejects } from './rejects.ts'

/** `records`: the input of each entry; `size`: with those that were rejected; `end`: the position behind the batch. */
type Batch = { entries: Entry[]; records: InputRecord[]; size: number; end: Omit<Position, 'rejects'> }

const conflict: Reason = {
  code: 'id-conflict',
  detail: `is the id of a plant that already exists with a different ${listShown('or')}`,
  pointer: '/id',
}

/** `result`: what was done so far; `progress`: undefined when nothing is added; `start`: where an earlier run ended. */
type Run = Omit<ImportOptions, 'rejects'> & {
  result: ImportResult
  input: Input
  records: Records
  rejects: Rejects
  log: Pick<PlantLog, 'append'>
  progress: ImportProgress | undefined
  start: Position
}

const roomEveryMs = 25
const roomMs = 2
const firstPauseMs = 100
const longestPauseMs = 2000

/** Adds all records. Those before an unreadable one are added, too. */
export async function addRecords(run: Run): Promise<void> {
  const { result, start, progress } = run
  result.skipped = start.records
  result.records = start.records
  let madeRoomAtMs = performance.now()
  const add = async (batch: Batch): Promise<Position> => {
    const end = await commit(run, batch)
    // Pause now and then: other processes poll for the lock of a SQLite file.
    if (performance.now() - madeRoomAtMs < roomEveryMs) return end
    await sleep(roomMs)
    madeRoomAtMs = performance.now()
    return end
  }
  let underWay = Promise.resolve(start)
  try {
    for await (const batch of readBatches(run)) {
      await underWay
      underWay = add(batch)
      underWay.catch(() => {})
    }
  } finally {
    // Let the current batch end in any case.
    await underWay
  }
  await progress?.finish(await underWay)
}

async function* readBatches(run: Run): AsyncGenerator<Batch> {
  const { records, start, batchPlants = defaultBatchPlants, signal, onProgress, input } = run
  let count = 0
  let batch = makeBatch()
  try {
    for await (const group of records.groups) {
      for (const record of group) {
        if (++count <= start.records) continue
        take(run, record, batch)
        batch.end = { records: count, line: record.line }
        if (batch.size < batchPlants) continue
        yield batch
        batch = makeBatch()
      }
      signal.throwIfAborted()
      onProgress?.(count, input.readShare())
    }
  } catch (error) {
    if (error instanceof InputError && batch.size > 0) yield batch
    throw error
  }
  if (batch.size > 0) yield batch
}

function makeBatch(): Batch {
  return { entries: [], records: [], size: 0, end: { records: 0, line: 0 } }
}

function take({ records, rejects, result }: Run, record: InputRecord, batch: Batch): void {
  const checked = records.check.check(record)
  batch.size++
  if ('faults' in checked) {
    result.rejected++
    rejects.add(record, checked.faults)
  } else {
    batch.entries.push(checked)
    batch.records.push(record)
  }
}

/** Adds a batch, and returns the position behind it. */
async function commit(run: Run, batch: Batch): Promise<Position> {
  const { progress, rejects, records, result } = run
  rejects.flush()
  await progress?.readOwn()
  const end = { ...batch.end, rejects: rejects.bytes }
  const outcomes = await append(run, batch.entries, end)
  result.records = end.records
  outcomes.forEach((outcome, index) => {
    result[outcome]++
    if (outcome === 'conflict')
      rejects.add(batch.records[index] as InputRecord, [records.check.locate(conflict)])
  })
  // Conflicts are known to this process alone, so write them out at once.
  rejects.flush()
  return end
}

async function append(run: Run, entries: Entry[], end: Position): Promise<Outcome[]> {
  const { log, progress, signal, patienceMs = defaultPatienceMs, say } = run
  const untilMs = performance.now() + patienceMs
  let mayBeThere = false
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      if (mayBeThere && (await progress?.holds(end))) return await repeat(log, entries)
      return await log.append(entries, undefined, progress?.mark(end))
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      mayBeThere ||= error.outcome === 'unknown'
      if (performance.now() + pauseMs > untilMs) throw error
      if (pauseMs === firstPauseMs) say(`the store is unavailable, retrying: ${error.message}`)
      await sleep(pauseMs, undefined, { signal })
    }
  }
}

/**
 * Returns the outcomes of a batch that is in the log already: appends its plants with an id again, which is safe and
 * says `replayed` of each; those without an id were added.
 */
async function repeat(log: Run['log'], entries: Entry[]): Promise<Outcome[]> {
  const known = await log.append(entries.filter(({ id }) => id !== undefined))
  return entries.map(({ id }) => (id === undefined ? 'added' : (known.shift() as Outcome)))
}
