// Imports an input. With `strict` a first pass checks all of it before anything is added.
import { addRecords, type Run } from './add-records.ts'
import type { ImportOptions, ImportResult } from './import-options.ts'
import { Input, nameOf, refuseInput } from './input.ts'
import { beginning } from './notes.ts'
import { Progress } from './progress.ts'
import { InputError } from './record.ts'
import { readRecords } from './records.ts'
import { Rejects } from './rejects.ts'

/**
 * Imports the plants of an input. Throws InputError when the rest of the input cannot be read, StoreRefused or
 * StoreUnavailable when the store does not take it; committed batches stay, and the import can be resumed.
 */
export async function importPlants(options: ImportOptions): Promise<ImportResult> {
  const { signal, path, result = makeResult() } = options
  try {
    const input = new Input(options)
    await importFrom(input, options, result).finally(() => input.close())
    return result
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if ((error as NodeJS.ErrnoException).syscall === 'read') refuseInput(path, error as Error)
    if (!(error instanceof InputError)) throw error
    const { line, message } = error
    throw new InputError(`${nameOf(path)}${line === undefined ? '' : `, line ${line}`}: ${message}`, line)
  }
}

/** Counts of nothing yet. */
export function makeResult(): ImportResult {
  return { records: 0, skipped: 0, added: 0, replayed: 0, conflict: 0, rejected: 0, reasons: [] }
}

async function importFrom(input: Input, options: ImportOptions, result: ImportResult): Promise<void> {
  const { strict = false, dryRun } = options
  await input.open(strict && !dryRun)
  const records = await readRecords(await input.read(), options)
  const rejects = new Rejects(options, records, result)
  const run = { options, result, records, rejects }
  await (dryRun ? checkOnly(run) : addAll(run, input)).finally(() => rejects.close())
}

type Pass = Pick<Run, 'options' | 'result' | 'records' | 'rejects'>

async function checkOnly(pass: Pass): Promise<void> {
  const view = await pass.options.openView?.()
  const find: Run['find'] = async (ids) => view?.find(ids) ?? new Map()
  try {
    const from = pass.rejects.open(beginning)
    await addRecords({ ...pass, find, isDry: true, known: beginning, from })
  } finally {
    await view?.close()
  }
}

async function addAll(pass: Pass, input: Input): Promise<void> {
  const { options, records, rejects } = pass
  if (records.isCompressed && input.isFile) await input.readThrough([])
  const store = await options.openStore()
  try {
    const progress = new Progress({ store, options, input, reading: records })
    const known = await progress.claim()
    const run = { ...pass, find: store.find, isDry: false, progress, known, from: rejects.open(known) }
    if (options.strict) {
      await checkFirst(run)
      run.from = known
      run.records = await readRecords(await input.read(), options)
    }
    const end = await addRecords(run)
    await progress.finish({ ...end, batch: { ...end, rejects: rejects.bytes } }, run.records.prefix.bytes)
    if (known.records > 0 && end.bytes === known.bytes) options.say(`${nameOf(options.path)}: nothing is new`)
  } finally {
    await store.close()
  }
}

/** Passes through the input without adding anything. Throws InputError when a record is rejected. */
async function checkFirst(run: Run): Promise<void> {
  const look = makeResult()
  await addRecords({ ...run, result: look, isDry: true }).finally(() => {
    run.result.rejected = look.rejected
    run.result.conflict = look.conflict
  })
  if (look.rejected + look.conflict > 0)
    throw new InputError('nothing was added: with --strict all records must be valid')
}
