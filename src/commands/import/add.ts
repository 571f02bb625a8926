// The second pass of an import: appends what was checked, in batches, each with the progress in the same transaction.
import { setTimeout as sleep } from 'node:timers/promises'
import { CommandError } from '../../cli/console.ts'
import { serializeItem } from '../../plants/item.ts'
import type { Entry, Outcome, Store } from '../../store/engine.ts'
import { StoreUnavailable } from '../../store/errors.ts'
import { type Batch, type Reading, readBatches } from './batches.ts'
import type { Checked } from './check.ts'
import type { Progress } from './progress.ts'
import { InputError } from './records.ts'

/** `from`: what was imported before, as an offset and the plants up to there; `counts`: raised by each batch. */
type Options = {
  store: Store
  progress: Progress
  checked: Checked
  from: { offset: number; plants: number }
  name: string
  skipInvalid: boolean
  counts: Record<Outcome, number>
  signal: AbortSignal
  onProgress: (plants: number) => void
}

const roomEveryMs = 25
const roomMs = 2
const changed = 'was changed while it was imported; run the same command again'

/** Adds all plants behind the offset. The next batch is read while one is appended. */
export async function addPlants(reading: Reading, options: Options): Promise<void> {
  const { checked, from, skipInvalid, signal, onProgress } = options
  let { plants } = from
  let first = ''
  let roomAtMs = performance.now()
  const add = async (batch: Batch, isWhole: boolean) => {
    await append(batch, { ...options, first, isWhole })
    onProgress(plants)
    // Other processes poll for the lock of a SQLite file.
    if (performance.now() - roomAtMs < roomEveryMs) return
    await sleep(roomMs)
    roomAtMs = performance.now()
  }
  let underWay = Promise.resolve()
  try {
    for await (const batch of readBatches(reading, from.offset, new Set())) {
      if (batch.plants < batch.items.length && !skipInvalid) throw new InputError(changed)
      if (batch.plants === 0) continue
      plants += batch.plants
      const isWhole = plants === checked.plants
      if (plants > checked.plants || (isWhole && batch.hash !== checked.hash)) throw new InputError(changed)
      first ||= batch.hash
      await underWay
      signal.throwIfAborted()
      underWay = add(batch, isWhole)
      underWay.catch(() => {})
    }
  } finally {
    // Let the current batch end in any case.
    await underWay
  }
  if (plants < checked.plants) throw new InputError(changed)
}

async function append(batch: Batch, options: Options & { first: string; isWhole: boolean }): Promise<void> {
  const { store, progress, name, counts, first, isWhole } = options
  const entries: Entry[] = []
  for (const { plant } of batch.items) if (plant) entries.push({ item: serializeItem(plant), id: plant.id })
  const note = progress.change(first, { bytes: batch.end, hash: batch.hash, isWhole })
  try {
    for (const outcome of await store.log.append(entries, { note })) counts[outcome]++
    progress.committed(note.value)
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    if (await progress.isTaken(store, note.value).catch(() => false))
      throw new CommandError(`another import of ${name} is running: wait until it ends`)
    throw new CommandError(`the import was cut short: ${error.message}; run the same command to go on`, {
      cause: error,
    })
  }
}
