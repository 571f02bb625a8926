// Imports an input. With `strict` a first pass checks all of it before anything is added.
import { randomUUID } from 'node:crypto'
import { realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { selectRows } from '../../store/view.ts'
import { addRecords, type Run } from './add-records.ts'
import { makeDryLog, type Select } from './dry-log.ts'
import type { ImportOptions, ImportResult } from './import-options.ts'
import { ImportProgress } from './import-progress.ts'
import { keepCopy, nameOf, readThrough } from './input.ts'
import { InputError } from './input-error.ts'
import { beginning } from './notes.ts'
import { openRecords, type Records } from './records.ts'
import { Rejects } from './rejects.ts'

/**
 * Imports the plants of an input. Throws InputError when the rest of the input cannot be read, StoreRefused or
 * StoreUnavailable when the store does not take it; committed batches stay, and the import can be resumed.
 */
export async function importPlants(options: ImportOptions): Promise<ImportResult> {
  const { signal, path, result = makeResult() } = options
  try {
    await importFrom(options, result)
    return result
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw error instanceof InputError ? error.in(nameOf(path)) : error
  }
}

/** Counts of nothing yet. */
export function makeResult(): ImportResult {
  return { records: 0, skipped: 0, added: 0, replayed: 0, conflict: 0, rejected: 0, reasons: [] }
}

/** Imports the input; with `strict` a pipe is copied first, as it is read twice. */
async function importFrom(options: ImportOptions, result: ImportResult): Promise<void> {
  const { path, strict, dryRun, signal } = options
  const copy = join(tmpdir(), `plant-store-${randomUUID()}`)
  const removeCopy = () => rmSync(copy, { force: true })
  signal.addEventListener('abort', removeCopy, { once: true })
  try {
    const isCopied = strict && !dryRun && (await keepCopy(path, copy, signal))
    const file = isCopied ? copy : path
    await withRecords(file, options, async (records) => {
      const { isFile, isCompressed } = records.input
      if (isFile && isCompressed) await readThrough(file, [], signal)
      await (dryRun ? checkOnly : addAll)({ options, result, records, file })
    })
  } finally {
    removeCopy()
  }
}

async function withRecords(
  file: string,
  options: ImportOptions,
  work: (records: Records) => Promise<void>,
): Promise<void> {
  const records = await openRecords(file, options)
  try {
    await work(records)
  } finally {
    records.input.close()
  }
}

type Work = { options: ImportOptions; result: ImportResult; records: Records; file: string }

async function checkOnly({ options, result, records }: Work): Promise<void> {
  const view = await options.openView?.()
  const rejects = new Rejects(options, records, result)
  try {
    const start = rejects.open({ from: beginning, end: beginning })
    await check(
      { ...options, result, records, rejects, start, known: start },
      view && ((...query) => selectRows(view, ...query)),
    )
  } finally {
    rejects.close()
    await view?.close()
  }
}

async function addAll({ options, result, records, file }: Work): Promise<void> {
  const store = await options.openStore()
  const rejects = new Rejects(options, records, result)
  try {
    const isNamed = records.input.isFile && file === options.path
    const path = isNamed ? realpathSync(file) : undefined
    const progress = new ImportProgress(store.sql, options, { records, file, path })
    const run = { ...options, log: store.log, result, rejects, progress }
    const add = async (records: Records) => {
      const start = await progress.claim()
      const from = rejects.isOpen ? start.end : rejects.open(start)
      const end = await addRecords({ ...run, ...start, records, start: from, known: start.end })
      await progress.finish(end, records.beginning.bytes)
      if (start.end.records > 0 && end.bytes === start.end.bytes)
        options.say(`${nameOf(options.path)}: nothing is new`)
    }
    if (!options.strict) return await add(records)
    const start = await progress.findStart()
    const look = { ...run, ...start, records, start: rejects.open(start), known: start.end }
    await checkFirst(look, (columns, rest) => store.sql.select(`SELECT ${columns} ${rest}`))
    await withRecords(file, options, add)
  } finally {
    rejects.close()
    await store.close()
  }
}

/** Throws InputError when a record is rejected. */
async function checkFirst(run: Run, select: Select): Promise<void> {
  const { result } = run
  const look = makeResult()
  await check({ ...run, result: look }, select).finally(() => {
    result.rejected = look.rejected
    result.conflict = look.conflict
  })
  if (look.rejected + look.conflict > 0)
    throw new InputError('nothing was added: with --strict all records must be valid')
}

/** Passes through the input without adding anything. */
async function check(run: Omit<Run, 'log' | 'progress'>, select: Select | undefined): Promise<void> {
  const log = makeDryLog(select)
  try {
    await addRecords({ ...run, log, progress: undefined })
  } finally {
    log.close()
  }
}
