// Opens the log of a store for an input, at its beginning or at the end of an interrupted import. With `dryRun` the log
// keeps nothing.
import { resolve } from 'node:path'
import { count } from '../../runtime/count.ts'
import { StoreRefused } from '../../store/store.ts'
import { BatchWriter } from './batch-writer.ts'
import { DryLog } from './dry-log.ts'
import { defaultPatienceMs, type ImportOptions } from './import-options.ts'
import { isAtWork } from './import-owner.ts'
import { type Found, type Position, ProgressStore } from './import-progress.ts'
import type { Input } from './input.ts'
import type { Rejects } from './rejects.ts'

const beginning: Position = { records: 0, line: 0, rejects: 0 }

/** `readAs`: options that change what a record is; `isLook`: a first pass, which asks the store and adds nothing. */
export type OpenOptions = Omit<ImportOptions, 'rejects'> & {
  input: Input
  hashes: string[]
  readAs: unknown
  isLook: boolean
  idPointer: string
  rejects: Rejects
}

export async function openWriter(options: OpenOptions): Promise<BatchWriter> {
  const { input, path, hashes, readAs, rejects, say, signal, patienceMs = defaultPatienceMs } = options
  const { dryRun, isLook, idPointer } = options
  const store = dryRun && !isLook ? undefined : await options.openStore()
  const shared = { rejects, idPointer, signal, patienceMs, say }
  try {
    if (store === undefined || isLook) {
      rejects.open(beginning)
      const log = new DryLog(store)
      return new BatchWriter(beginning, {
        ...shared,
        log,
        progressStore: undefined,
        close: () => log.close(),
      })
    }
    const name = path === '-' ? input.name : resolve(path)
    const progressStore = new ProgressStore(store, { name, hashes, options: readAs })
    const found = await progressStore.find()
    const start = await findStart(progressStore, found, options)
    rejects.open(start)
    await progressStore.claim(start, found, options.resume === true)
    return new BatchWriter(start, { ...shared, log: store.log, progressStore, close: () => store.close() })
  } catch (error) {
    await store?.close()
    throw error
  }
}

/**
 * Finds where to start. Throws StoreRefused when an import of the input runs, or was interrupted and neither `resume`
 * nor `restart` is set.
 */
async function findStart(
  progressStore: ProgressStore,
  found: Found | undefined,
  { resume, restart, say, input: { name } }: OpenOptions,
): Promise<Position> {
  if (!found) {
    if (resume && (await progressStore.hasNamesake()))
      throw new StoreRefused(
        `${name} does not begin like the input whose import was cut short: it cannot be resumed`,
      )
    return beginning
  }
  const { progress } = found
  if (!progress.done && isAtWork(progress))
    throw new StoreRefused(`an import of ${name} is running, as process ${progress.pid}: wait until it ends`)
  if (resume) {
    if (progressStore.isOtherwise(found))
      throw new StoreRefused(
        `${name}: the options differ from those of the import that was cut short: it cannot be resumed`,
      )
    say(`${name}: ${count(progress.records, 'record')} already imported`)
    return { records: progress.records, line: progress.line, rejects: progress.rejects }
  }
  if (!progress.done && progress.records > 0 && !restart)
    throw new StoreRefused(
      `${name}: an import was cut short after ${count(progress.records, 'record')}; --resume goes on there, --restart begins anew and adds them again`,
    )
  return beginning
}
