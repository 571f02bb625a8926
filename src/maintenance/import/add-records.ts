// One pass through an input: reads and checks its records, and appends them to the log in batches, one by one. The next
// is read meanwhile, and appended only once the outcome of the last is certain.
import { setTimeout as sleep } from 'node:timers/promises'
import { listShown } from '../../../schemas/plant.ts'
import type { Entry, Outcome, Store } from '../../store/engine.ts'
import { StoreUnavailable } from '../../store/errors.ts'
import { describeFaults } from './check.ts'
import type { ImportOptions, ImportResult, Reason } from './import-options.ts'
import { type Judge, makeJudge } from './judge.ts'
import type { Position } from './notes.ts'
import type { Progress } from './progress.ts'
import { InputError, type InputRecord } from './record.ts'
import type { Records } from './records.ts'
import type { Rejects } from './rejects.ts'

/** `entries`: of records without a fault; `end`: the position behind all of them. */
type Batch = { entries: Entry[]; valid: InputRecord[]; faulty: [InputRecord, Reason[]][]; end: Position }

const conflict: Reason = {
  code: 'id-conflict',
  detail: `is the id of a plant that already exists with a different ${listShown('or')}`,
  pointer: '/id',
}

/**
 * `isDry`: nothing is added; `progress`: undefined where there is no store; `known`: up to there records are in the log
 * already; `from`: where those begin whose rejects are needed.
 */
export type Run = {
  options: ImportOptions
  result: ImportResult
  records: Records
  rejects: Rejects
  find: Store['find']
  isDry: boolean
  progress?: Progress
  known: Position
  from: Position
}

const roomEveryMs = 25
const roomMs = 2
const firstPauseMs = 100
const longestPauseMs = 2000

/** Adds all records; resolves to the position behind them. Those before an unreadable one are added, too. */
export async function addRecords(run: Run): Promise<Position> {
  const { result, known } = run
  result.skipped = known.records
  result.records = known.records
  const judge = makeJudge(run.find)
  let end = known
  let madeRoomAtMs = performance.now()
  const add = async (batch: Batch) => {
    await commit(run, batch, judge)
    end = batch.end
    // Pause now and then: other processes poll for the lock of a SQLite file.
    if (performance.now() - madeRoomAtMs < roomEveryMs) return
    await sleep(roomMs)
    madeRoomAtMs = performance.now()
  }
  let underWay = Promise.resolve()
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
  return end
}

async function* readBatches(run: Run): AsyncGenerator<Batch> {
  const { options, records, known, from } = run
  const { batchPlants, signal, onProgress } = options
  const { groups, prefix, readShare } = records
  let batch = makeBatch(from)
  /** The end of the last record. */
  let at = 0
  let isKnown = known.bytes === 0
  /** Throws when what was consumed is not the same to the byte, or no record ends with it. */
  const checkKnown = () => {
    isKnown = at === known.bytes && prefix.hash(at) === known.hash
    if (!isKnown) throw run.progress?.refuseChanged()
  }
  function* close() {
    const full = batch
    if (full.end.records === full.end.batch.records) return
    full.end.hash = prefix.hash(full.end.bytes)
    batch = makeBatch(full.end)
    yield full
  }
  try {
    for await (const group of groups) {
      for (const record of group) {
        at = record.end
        if (!isKnown && at >= known.bytes) checkKnown()
        if (at <= from.bytes) continue
        take(run, record, batch)
        const { end } = batch
        if (end.records - end.batch.records < batchPlants && at !== known.bytes) continue
        yield* close()
        signal.throwIfAborted()
      }
      prefix.advance(at)
      signal.throwIfAborted()
      onProgress?.(batch.end.records, readShare())
    }
    if (!isKnown) checkKnown()
  } catch (error) {
    if (error instanceof InputError) yield* close()
    throw error
  }
  yield* close()
}

function makeBatch({ bytes, hash, records, valid }: Position): Batch {
  const batch = { bytes, records, valid, rejects: 0 }
  return { valid: [], entries: [], faulty: [], end: { bytes, hash, records, valid, batch } }
}

function take({ records }: Run, record: InputRecord, { valid, entries, faulty, end }: Batch): void {
  const checked = records.check.check(record)
  if ('faults' in checked) {
    if (record.isOpen)
      throw new InputError(
        `the last record is cut short, as it has no end of line and ${describeFaults(checked.faults)}`,
        record.line,
      )
    faulty.push([record, checked.faults])
  } else {
    valid.push(record)
    entries.push(checked)
    end.valid++
  }
  end.records++
  end.bytes = record.end
}

async function commit(run: Run, batch: Batch, judge: Judge): Promise<void> {
  const { records, rejects, result, isDry } = run
  const { valid, entries, faulty, end } = batch
  const isKnown = end.bytes <= run.known.bytes
  end.batch.rejects = rejects.bytes
  for (const [record, faults] of faulty) rejects.add(record, faults)
  const outcomes = await (isKnown || isDry ? judge(entries) : append(run, batch, judge))
  for (const [index, outcome] of outcomes.entries()) {
    if (!isKnown) result[outcome]++
    if (outcome === 'conflict') rejects.add(valid[index] as InputRecord, [records.check.locate(conflict)])
  }
  rejects.flush()
  if (!isKnown) result.rejected += faulty.length
  result.records = end.records
}

async function append(run: Run, { entries, end }: Batch, judge: Judge): Promise<Outcome[]> {
  const { signal, patienceMs, say } = run.options
  const progress = run.progress as Progress
  const note = progress.noteOf(end)
  const untilMs = performance.now() + patienceMs
  let isThere = false
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    const wasThere: boolean = isThere
    try {
      return await (isThere ? judge(entries) : progress.append(entries, note))
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      // An attempt may have come through although it failed, or another run has taken over.
      isThere ||= await progress.holds(note)
      if (wasThere === isThere && performance.now() + pauseMs > untilMs) throw error
      if (pauseMs === firstPauseMs) say(`the store is unavailable, retrying: ${error.message}`)
      await sleep(pauseMs, undefined, { signal })
    }
  }
}
