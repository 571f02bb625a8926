// Imports an input: checks all of it, then adds what is new.
import { CommandError, count, separate } from '../../cli/console.ts'
import type { Progress } from '../../cli/long-work.ts'
import type { Store } from '../../store/engine.ts'
import { StoreMissing } from '../../store/errors.ts'
import { addPlants } from './add.ts'
import { checkInput } from './check.ts'
import { detectForm, type FormOptions } from './form.ts'
import { openInput } from './input.ts'
import { findEarlier, readNotes } from './notes.ts'
import { InputError } from './records.ts'
import { makeRejects } from './rejects.ts'

export type ImportOptions = FormOptions & {
  skipInvalid?: true
  again?: true
  dryRun?: true
  rejects?: string
  json?: true
}

/**
 * `open`: throws StoreMissing if there is no store and it may not create one. `counts` change while the import runs: `valid`:
 * records that can be added, or were before; `skipped`: those that were; `conflicting`: with an id that exists with another
 * plant; `rejected`: other invalid records; `reasons`: why.
 */
type Work = Progress & {
  path: string
  signal: AbortSignal
  open: (create: boolean) => Promise<Store>
  counts: Record<'valid' | 'added' | 'replayed' | 'conflicting' | 'rejected' | 'skipped', number>
  reasons: object[]
}

/** Throws CommandError, StoreRefused or StoreUnavailable; batches that are committed stay. */
export async function importPlants(options: ImportOptions, work: Work): Promise<void> {
  const name = work.path === '-' ? 'stdin' : work.path
  const closers: (() => unknown)[] = []
  try {
    await checkAndAdd(name, options, work, (close) => closers.push(close))
  } catch (error) {
    const { message, line, syscall } = error as InputError & NodeJS.ErrnoException
    if (error instanceof InputError)
      throw new CommandError(`${name}${line ? `, line ${line}` : ''}: ${message}`)
    throw syscall === undefined ? error : new CommandError(`cannot read ${name}: ${message}`)
  } finally {
    for (const close of closers) await close()
  }
}

async function checkAndAdd(
  name: string,
  options: ImportOptions,
  work: Work,
  closeLater: (close: () => unknown) => void,
) {
  const { skipInvalid, again = false, dryRun, json } = options
  const { path, signal, say, show, counts } = work
  const open = async (create: boolean) => {
    const store = await work.open(create)
    closeLater(() => store.close())
    return store
  }
  const rejects = makeRejects(name, options.rejects, json && work.reasons, say)
  closeLater(rejects.close)
  const input = await openInput(path, signal)
  closeLater(input.close)
  const store = await open(false).catch(ignoreMissing)
  const rows = await readNotes(store)
  const form = detectForm(await input.readHead(), options)
  const checked = await checkInput({ input, form, store, rows }, rejects, (records) => {
    signal.throwIfAborted()
    show(records, undefined, 'record')
  })
  const { records, plants, conflicts } = checked
  Object.assign(counts, { valid: plants - conflicts, conflicting: conflicts, rejected: records - plants })
  const publish = () => rejects.publish(form.format === 'json' ? '\n]\n' : '', signal)
  const invalid = records - counts.valid
  if (invalid > 0 && !skipInvalid) {
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
    const addition = {
      input,
      form,
      name,
      rows,
      checked,
      earlier,
      again,
      signal,
      store: store ?? (await open(true)),
    }
    const outcomes = { added: 0, replayed: 0, conflict: 0 }
    const onBatch = (done: number) => {
      const { conflict, ...others } = outcomes
      Object.assign(counts, { ...others, conflicting: Math.max(conflicts, conflict) })
      show(done, plants)
    }
    await addPlants({ ...addition, outcomes, onBatch })
  }
  await publish()
}

function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof StoreMissing)) throw error
}
