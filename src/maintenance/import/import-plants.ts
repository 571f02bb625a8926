// Imports an input. With `strict` a first pass checks all of it before anything is added.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { settleMs } from '../../limits.ts'
import type { Store } from '../../store/store.ts'
import { makeDryLog } from './dry-log.ts'
import { resolveFields } from './fields.ts'
import type { ImportOptions, ImportResult } from './import-options.ts'
import { beginning, ProgressStore } from './import-progress.ts'
import { keepCopy, openInput } from './input.ts'
import { InputError } from './input-error.ts'
import { openRecords } from './records.ts'
import { Rejects } from './rejects.ts'
import { Run, type RunOptions } from './run.ts'

/** `file`: a copy of the input; `openStore`: with `dryRun`, ids are compared with those of a store, if there is one. */
type Pass = Omit<ImportOptions, 'openStore'> & {
  result: ImportResult
  file?: string | undefined
  openStore: () => Promise<Store | undefined>
}

/**
 * Imports the plants of an input. Throws InputError when the rest of the input cannot be read, StoreRefused or
 * StoreUnavailable when the store does not take it; committed batches stay, and the import can be resumed.
 */
export async function importPlants(options: ImportOptions): Promise<ImportResult> {
  const { strict, dryRun, signal, onEnd } = options
  const openStore = dryRun ? async () => undefined : options.openStore
  const pass = { ...options, openStore, result: makeResult() }
  const done = strict && !dryRun ? importAllOrNothing(pass) : importOnce(pass)
  try {
    await Promise.race([done, endAfterAbort(signal)])
    return pass.result
  } catch (error) {
    /* c8 ignore next: an interrupted process reports no coverage */
    throw signal.aborted ? signal.reason : error
  } finally {
    onEnd?.({ ...pass.result })
  }
}

function makeResult(): ImportResult {
  return { records: 0, skipped: 0, added: 0, replayed: 0, conflict: 0, rejected: 0 }
}

/** Rejects some time after the signal: most batches end before, and a longer one is not waited for. */
async function endAfterAbort(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort')
  await sleep(settleMs, undefined, { ref: false })
  throw signal.reason
}

async function importAllOrNothing(pass: Pass): Promise<void> {
  const { path, signal, result } = pass
  const copy = join(tmpdir(), `plant-store-${randomUUID()}`)
  const removeCopy = () => rmSync(copy, { force: true })
  signal.addEventListener('abort', removeCopy, { once: true })
  try {
    const file = (await keepCopy(path, copy, signal)) ? copy : undefined
    const look = makeResult()
    await importOnce({ ...pass, file, result: look, dryRun: true }).finally(() => {
      result.rejected = look.rejected
      result.conflict = look.conflict
    })
    if (look.rejected + look.conflict > 0)
      throw new InputError('nothing was added, as --strict adds all or nothing')
    await importOnce({ ...pass, file })
  } finally {
    removeCopy()
  }
}

async function importOnce(pass: Pass): Promise<void> {
  const { path, signal, file, format, trim = false } = pass
  const input = await openInput(path, signal, file)
  try {
    const records = await openRecords(input, { format, fields: resolveFields(pass), trim })
    const rejects = new Rejects(pass, input.name, records.header)
    await importRecords({ ...pass, input, records, rejects }).finally(() => rejects.close())
  } catch (error) {
    throw error instanceof InputError ? error.in(input.name) : error
  } finally {
    input.close()
  }
}

type Opened = Omit<Pass, 'rejects'> & Pick<RunOptions, 'input' | 'records' | 'rejects'>

async function importRecords(opened: Opened): Promise<void> {
  const { dryRun, rejects } = opened
  const store = await opened.openStore()
  try {
    if (store && !dryRun) {
      const progress = new ProgressStore(store, opened)
      const start = await progress.findStart(opened)
      rejects.open(start)
      await progress.claim(start)
      await new Run({ ...opened, log: store.log, progress, start }).run()
    } else {
      rejects.open(beginning)
      const log = makeDryLog(store)
      const run = new Run({ ...opened, log, progress: undefined, start: beginning })
      await run.run().finally(() => log.close())
    }
  } finally {
    await store?.close()
  }
}
