// Imports an input: checks all of it, then adds what is new.
import { CommandError, count, separate } from '../../cli/console.ts'
import type { Progress } from '../../cli/long-work.ts'
import type { Store } from '../../store/engine.ts'
import { StoreMissing } from '../../store/errors.ts'
import { detectForm, type FormOptions } from './form.ts'
import { Input } from './input.ts'
import { addPlants, checkInput, type Pass } from './passes.ts'
import type { FieldOptions } from './plants.ts'
import { findEarlier, readNotes } from './progress.ts'
import { InputError } from './records.ts'
import { type RejectOptions, Rejects } from './rejects.ts'

type Choices = { path: string; skipInvalid?: true; again?: true; dryRun?: true }
export type ImportOptions = Choices & FormOptions & FieldOptions & RejectOptions

/**
 * `open`: throws StoreMissing if there is no store and it may not create one; `counts` and `reasons` change while the import
 * runs. `valid`: records that can be added, or were before; `skipped`: those that were; `conflicting`: valid, but with an
 * id that exists with another plant; `rejected`: other invalid records.
 */
export type Work = Pick<Progress, 'show'> & {
  signal: AbortSignal
  open: (create: boolean) => Promise<Store>
  counts: Record<'valid' | 'added' | 'replayed' | 'conflicting' | 'rejected' | 'skipped', number>
  reasons: object[]
}

/** Throws CommandError, StoreRefused or StoreUnavailable; batches that are committed stay. */
export async function importPlants(options: ImportOptions, work: Work): Promise<void> {
  const { path } = options
  const name = path === '-' ? 'stdin' : path
  const { signal, reasons } = work
  let [input, store, rejects]: [Input?, Store?, Rejects?] = []
  const open = async (create: boolean) => (store = await work.open(create))
  try {
    rejects = new Rejects(options, reasons)
    input = await Input.open(path, signal)
    await open(false).catch(ignoreMissing)
    const form = detectForm(await input.readHead(), options)
    const pass = { name, input, form, fields: options, store, rows: await readNotes(store), signal }
    await checkAndAdd(pass, rejects, options, { ...work, open })
  } catch (error) {
    const { message, line, syscall } = error as InputError & NodeJS.ErrnoException
    if (syscall !== undefined) throw new CommandError(`cannot read ${name}: ${message}`)
    if (!(error instanceof InputError)) throw error
    throw new CommandError(`${name}${line === undefined ? '' : `, line ${line}`}: ${message}`)
  } finally {
    for (const one of [input, rejects, store]) await one?.close()
  }
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof StoreMissing)) throw error
}

async function checkAndAdd(
  pass: Pass,
  rejects: Rejects,
  options: ImportOptions,
  { show, open, counts }: Work,
) {
  const { name, input, form, rows, signal } = pass
  const { skipInvalid = false, again = false, dryRun = false, say } = options
  const onRecords = (records: number) => show(records, Math.round(records / input.share), 'record')
  const checked = await checkInput(pass, rejects, onRecords)
  const { records, plants, conflicts } = checked
  Object.assign(counts, { valid: plants - conflicts, conflicting: conflicts, rejected: records - plants })
  const invalid = records - counts.valid
  const isRefused = invalid > 0 && !skipInvalid
  const publish = () => rejects.publish(form.format === 'json' ? '\n]\n' : '', signal)
  if (isRefused) {
    await publish()
    if (dryRun) return
    const shown = `${separate(invalid)} of ${count(records, 'record')}`
    throw new CommandError(
      `${name}: nothing was added, as ${shown} cannot be added; --skip-invalid adds the others`,
    )
  }
  const earlier = findEarlier(rows, checked.matching, input.path, again)
  counts.skipped = earlier?.plants ?? 0
  if (earlier) say(`${name}: ${count(counts.skipped, 'plant')} already imported`)
  if (plants === counts.skipped) say(`${name}: nothing is new`)
  else if (!dryRun) {
    const store = pass.store ?? (await open(true))
    const onProgress = (done: number) => show(done, plants)
    const outcomes = { added: 0, replayed: 0, conflict: 0 }
    await addPlants(
      { ...pass, store },
      { checked, earlier, again, skipInvalid, outcomes, onProgress },
    ).finally(() => {
      const { conflict, ...others } = outcomes
      Object.assign(counts, { ...others, conflicting: Math.max(conflicts, conflict) })
    })
  }
  await publish()
}
