// One pass through an input: reads and checks its records, and appends them to the log in batches, one by one. The next
// is read meanwhile, and appended only once the outcome of the last is certain.
import { setTimeout as sleep } from 'node:timers/promises'
import { listShown } from '../../../schemas/plant.ts'
import {
  type Checkpoint,
  type Entry,
  type Outcome,
  type PlantLog,
  StoreUnavailable,
} from '../../store/store.ts'
import { describeFaults } from './check.ts'
import {
  defaultBatchPlants,
  defaultPatienceMs,
  type ImportOptions,
  type ImportResult,
  type Reason,
} from './import-options.ts'
import type { ImportProgress } from './import-progress.ts'
import { InputError } from './input-error.ts'
import type { Position } from './notes.ts'
import type { InputRecord } from './record.ts'
import type { Records } from './records.ts'
import type { Rejects } from './rejects.ts'

/** `checked`: all records with what they came to; `end`: the position behind the batch, without its rejects. */
type Batch = {
  checked: { record: InputRecord; faults: Reason[] | undefined }[]
  entries: Entry[]
  end: Position
}

const conflict: Reason = {
  code: 'id-conflict',
  detail: `is the id of a plant that already exists with a different ${listShown('or')}`,
  pointer: '/id',
}

/**
 * `result`: what was done so far; `progress`: undefined when nothing is added; `start`: where to begin; `known`: up to
 * there records are in the log, and only their rejects are needed.
 */
export type Run = Omit<ImportOptions, 'rejects'> & {
  result: ImportResult
  records: Records
  rejects: Rejects
  log: Pick<PlantLog, 'append'>
  progress: ImportProgress | undefined
  start: Position
  known: Position
  /** The error of an input whose beginning is another than what was consumed. */
  refuseChanged?: (() => Error) | undefined
}

const roomEveryMs = 25
const roomMs = 2
const firstPauseMs = 100
const longestPauseMs = 2000

/** Adds all records; resolves to the position behind them. Those before an unreadable one are added, too. */
export async function addRecords(run: Run): Promise<Position> {
  const { result, start, known } = run
  result.skipped = known.records
  result.records = known.records
  let madeRoomAtMs = performance.now()
  const add = async (batch: Batch, from: Position): Promise<Position> => {
    const end = await commit(run, batch, from)
    // Pause now and then: other processes poll for the lock of a SQLite file.
    if (performance.now() - madeRoomAtMs < roomEveryMs) return end
    await sleep(roomMs)
    madeRoomAtMs = performance.now()
    return end
  }
  let underWay = Promise.resolve(start)
  try {
    for await (const batch of readBatches(run)) {
      const from = await underWay
      underWay = add(batch, from)
      underWay.catch(() => {})
    }
  } finally {
    // Let the current batch end in any case.
    await underWay
  }
  return underWay
}

async function* readBatches(run: Run): AsyncGenerator<Batch> {
  const { records, start, known, batchPlants = defaultBatchPlants, signal, onProgress } = run
  const { groups, beginning, input } = records
  let batch = makeBatch(start)
  /** The end of the last record. */
  let at = 0
  const close = () => {
    batch.end.hash = beginning.hash(batch.end.bytes)
    return batch
  }
  try {
    for await (const group of groups) {
      for (const record of group) {
        if (at <= start.bytes && record.end > start.bytes) checkStart(run, at)
        at = record.end
        if (at <= start.bytes) continue
        take(run, record, batch)
        if (batch.checked.length < batchPlants && at !== known.bytes) continue
        yield close()
        batch = makeBatch(batch.end)
      }
      beginning.hash(at)
      signal.throwIfAborted()
      onProgress?.(batch.end.records, input.readShare())
    }
    if (at <= start.bytes) checkStart(run, at)
  } catch (error) {
    if (error instanceof InputError && batch.checked.length > 0) yield close()
    throw error
  }
  if (batch.checked.length > 0) yield close()
}

function makeBatch(end: Position): Batch {
  return { checked: [], entries: [], end: { ...end } }
}

/** Throws when what was consumed is not the same to the byte, or no record ends with it. */
function checkStart({ start, records, refuseChanged }: Run, at: number): void {
  if (at !== start.bytes || records.beginning.hash(at) !== start.hash) throw refuseChanged?.()
}

function take({ records }: Run, record: InputRecord, batch: Batch): void {
  const checked = records.check.check(record)
  const faults = 'faults' in checked ? checked.faults : undefined
  if (faults && record.isOpen)
    throw new InputError(
      `the last record is cut short, as it has no end of line and ${describeFaults(faults)}`,
      record.line,
    )
  const { end } = batch
  end.records++
  end.line = record.line
  end.bytes = record.end
  batch.checked.push({ record, faults })
  if ('faults' in checked) return
  end.valid++
  batch.entries.push(checked)
}

/** Adds a batch, and returns the position behind it. */
async function commit(run: Run, batch: Batch, from: Position): Promise<Position> {
  const { progress, rejects, records, result, known, log } = run
  const end = { ...batch.end, rejects: rejects.bytes }
  const isKnown = end.bytes <= known.bytes
  for (const { record, faults } of batch.checked) if (faults) rejects.add(record, faults)
  // What an earlier run has written comes before what it did not.
  if (!isKnown) rejects.flush(true)
  const mark = progress?.mark({ from, end })
  const outcomes = await (isKnown ? repeat(log, batch.entries) : append(run, batch.entries, mark))
  const valid = batch.checked.filter(({ faults }) => !faults)
  for (const [index, outcome] of outcomes.entries()) {
    if (!isKnown) result[outcome]++
    const { record } = valid[index] as Batch['checked'][number]
    if (outcome === 'conflict') rejects.add(record, [records.check.locate(conflict)])
  }
  // Conflicts are known to this process alone, so write them out at once.
  rejects.flush()
  if (!isKnown) result.rejected += batch.checked.length - valid.length
  result.records = Math.max(end.records, known.records)
  return { ...end, rejects: rejects.bytes }
}

async function append(run: Run, entries: Entry[], mark: Checkpoint | undefined): Promise<Outcome[]> {
  const { log, progress, signal, patienceMs = defaultPatienceMs, say } = run
  const untilMs = performance.now() + patienceMs
  let isThere = false
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    const wasThere: boolean = isThere
    try {
      const outcomes = await (isThere ? repeat(log, entries) : log.append(entries, undefined, mark))
      progress?.pass(mark)
      return outcomes
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      // An attempt may have come through although it failed, or another run has taken over.
      isThere ||= (await progress?.holds(mark)) === true
      if (wasThere === isThere && performance.now() + pauseMs > untilMs) throw error
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
