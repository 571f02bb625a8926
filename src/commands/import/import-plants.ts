// Imports an input: checks all of it, then adds what is new.
import { CommandError, count, separate } from '../../cli/console.ts'
import type { Store } from '../../store/engine.ts'
import { StoreMissing } from '../../store/errors.ts'
import { addPlants } from './add.ts'
import { type RecordOptions, readInput } from './batches.ts'
import { checkInput } from './check.ts'
import { Input, nameOf, refuseInput } from './input.ts'
import { findEarlier, Progress, readNotes } from './progress.ts'
import { InputError } from './records.ts'
import { Rejects } from './rejects.ts'

/**
 * `path`: `-` is stdin; `rejects`: the file for invalid records; `json`: keep all reasons; `openStore`: throws StoreMissing
 * if there is none and it may not be created; `say`: gets lines for the user; `result`: counts while the import runs.
 */
export type ImportOptions = RecordOptions & {
  path: string
  skipInvalid?: boolean
  again?: boolean
  dryRun?: boolean
  rejects?: string
  json?: boolean
  isTerminal?: boolean
  signal: AbortSignal
  openStore: (create: boolean) => Promise<Store>
  say: (line: string) => void
  onProgress: (done: number, total: number, noun: string) => void
  result: ImportResult
}

/**
 * `valid`: records that can be added, or were before; `skipped`: those that were; `conflicting`: valid but for an id that
 * exists with another plant; `rejected`: other invalid records.
 */
export type ImportResult = {
  valid: number
  added: number
  replayed: number
  conflicting: number
  rejected: number
  skipped: number
  reasons: Rejects['reasons']
}

export function makeResult(): ImportResult {
  return { valid: 0, added: 0, replayed: 0, conflicting: 0, rejected: 0, skipped: 0, reasons: [] }
}

/** Throws CommandError, StoreRefused or StoreUnavailable; batches that are committed stay. */
export async function importPlants(options: ImportOptions): Promise<void> {
  const { path, rejects: file, isTerminal = false, json = false, say, signal, openStore } = options
  const rejects = new Rejects({ name: nameOf(path), file, isTerminal, json, say })
  options.result.reasons = rejects.reasons
  const open: { close(): Promise<void> }[] = [rejects]
  try {
    const input = await Input.open(path, signal)
    open.push(input)
    const store = await openStore(false).catch(ignoreMissing)
    if (store) open.push(store)
    await checkAndAdd({ input, rejects, store }, options, (made) => open.push(made))
  } catch (error) {
    const { message, line, syscall } = error as InputError & NodeJS.ErrnoException
    if (syscall === 'read') refuseInput(path, error as Error)
    if (!(error instanceof InputError)) throw error
    throw new CommandError(`${nameOf(path)}${line === undefined ? '' : `, line ${line}`}: ${message}`)
  } finally {
    for (const one of open) await one.close()
  }
}

type Parts = { input: Input; rejects: Rejects; store: Store | undefined }

async function checkAndAdd(
  { input, rejects, store }: Parts,
  options: ImportOptions,
  made: (store: Store) => void,
) {
  const { path, skipInvalid = false, again = false, dryRun, signal, say, onProgress, result } = options
  const name = nameOf(path)
  const rows = await readNotes(store)
  const reading = await readInput(input, options)
  const onRecords = (records: number) => onProgress(records, Math.round(records / input.share), 'record')
  const checked = await checkInput(reading, { store, rows, rejects, signal, onProgress: onRecords })
  const { plants, conflicts, invalid } = checked
  Object.assign(result, { valid: plants - conflicts, conflicting: conflicts, rejected: invalid })
  const isRefused = invalid + conflicts > 0 && !skipInvalid
  const origin = { path: input.path, name, again }
  const earlier = isRefused ? undefined : findEarlier(rows, checked.matching, origin)
  result.skipped = earlier ? earlier.plants - earlier.conflicts : 0
  if (earlier) say(`${name}: ${count(result.skipped, 'plant')} already imported`)
  if (isRefused && !dryRun) {
    await rejects.publish(reading.form, signal)
    const records = `${separate(invalid + conflicts)} of ${count(checked.records, 'record')}`
    throw new CommandError(
      `${name}: nothing was added, as ${records} have faults; --skip-invalid adds the others`,
    )
  }
  const from = earlier ? { offset: earlier.row.note.bytes, plants: earlier.plants } : { offset: 0, plants: 0 }
  if (plants === from.plants) say(`${name}: nothing is new`)
  else if (!dryRun) {
    const target = store ?? (await openStore(options, made))
    const progress = new Progress(rows, earlier?.row, origin)
    const counts = { added: 0, replayed: 0, conflict: earlier?.conflicts ?? 0 }
    const onCounts = (done: number) => {
      Object.assign(result, { added: counts.added, replayed: counts.replayed })
      onProgress(done, plants, 'plant')
    }
    const second = await readInput(input, options)
    await addPlants(second, {
      store: target,
      progress,
      checked,
      from,
      name,
      skipInvalid,
      counts,
      signal,
      onProgress: onCounts,
    })
    const taken = counts.conflict - conflicts
    result.conflicting += taken
    if (taken > 0)
      say(
        `${name}: ${count(taken, 'plant')} not added, as others took their ids meanwhile; --dry-run tells which`,
      )
  }
  await rejects.publish(reading.form, signal)
}

async function openStore({ openStore }: ImportOptions, made: (store: Store) => void): Promise<Store> {
  const store = await openStore(true)
  made(store)
  return store
}

function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof StoreMissing)) throw error
}
