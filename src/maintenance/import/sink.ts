// Where batches go: into the log of a store, or nowhere when the input is only to be checked.
import { resolve } from 'node:path'
import { StoreRefused } from '../../store/store.ts'
import { type Batch, BatchWriter, type Tally } from './batch-writer.ts'
import { defaultPatienceMs, type ImportOptions } from './import-options.ts'
import { isAtWork } from './import-owner.ts'
import { type Found, Places, type Progressed } from './import-place.ts'
import type { Input } from './input.ts'
import type { InputIdentity } from './input-identity.ts'
import type { Rejects } from './rejects.ts'

/** `start`: what an earlier run has imported. */
export type Sink = {
  readonly start: Progressed
  readonly tally: Tally
  /** What was taken for certain. */
  readonly committed: Progressed
  /** Resolves when the batch is under way. Rejects when the one before it failed. */
  write(batch: Batch): Promise<void>
  /** Resolves when nothing is under way. */
  settle(): Promise<void>
  /** Notes that the input was read to its end. */
  end(): Promise<void>
  close(): Promise<void>
}

/** `readAs`: what decides what a record is. */
export type SinkOptions = Omit<ImportOptions, 'rejects'> & {
  input: Input
  identity: InputIdentity
  readAs: unknown
  rejects: Rejects
}

export const beginning: Progressed = { records: 0, line: 0, rejects: 0 }

export async function openSink(options: SinkOptions): Promise<Sink> {
  const { input, path, identity, readAs, rejects, say, signal, patienceMs = defaultPatienceMs } = options
  const store = await options.openStore()
  try {
    const name = path === '-' ? input.name : resolve(path)
    const places = new Places(store, { name, identity, options: readAs })
    const found = await places.find()
    const start = await findStart(places, found, options)
    rejects.open(start)
    await places.claim(start, found, options.resume === true)
    const onWait = (reason: string) => say(`the store takes nothing now, trying again: ${reason}`)
    const writer = new BatchWriter(start, { store, places, rejects, signal, patienceMs, onWait })
    return {
      start,
      tally: writer.tally,
      get committed() {
        return writer.committed
      },
      write: (batch) => writer.write(batch),
      settle: () => writer.settle(),
      async end() {
        rejects.flush()
        await places.finish(writer.committed)
      },
      close: () => store.close(),
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Throws StoreRefused when an import of the input runs, or was cut short and nobody has said what is to become of it. */
async function findStart(
  places: Places,
  found: Found | undefined,
  { resume, restart, say, input: { name } }: SinkOptions,
): Promise<Progressed> {
  if (!found) {
    if (resume && (await places.hasNamesake()))
      throw new StoreRefused(
        `${name} does not begin like the input whose import was cut short: it cannot be resumed`,
      )
    return beginning
  }
  const { place } = found
  if (!place.done && isAtWork(place))
    throw new StoreRefused(`an import of ${name} is running, as process ${place.pid}: wait until it ends`)
  if (resume) {
    if (places.isOtherwise(found))
      throw new StoreRefused(
        `${name}: the options differ from those of the import that was cut short: it cannot be resumed`,
      )
    say(`${name}: ${place.records} records are imported already`)
    return { records: place.records, line: place.line, rejects: place.rejects }
  }
  if (!place.done && place.records > 0 && !restart)
    throw new StoreRefused(
      `${name}: an import was cut short after ${place.records} records; --resume goes on there, --restart begins anew and adds them again`,
    )
  return beginning
}
