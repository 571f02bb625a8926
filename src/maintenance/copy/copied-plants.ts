// Copies the plants of a log batch by batch; each batch is read back at once and compared with the source.
import { createHash } from 'node:crypto'
import { count, separate } from '../../runtime/count.ts'
import type { Store, StoredPlant, StoreView, Upkeep } from '../../store/engine.ts'
import { StoreRefused } from '../../store/errors.ts'
import { lineOf } from '../../store/format/checksum.ts'
import { noteKeys } from '../import/notes.ts'

/** A store to copy into. */
export type Target = Store & { readonly upkeep: Upkeep }

export type CopyOptions = {
  /** Plants read, appended in one transaction and read back at a time. */
  batchPlants: number
  /** Called with the number of plants that are certainly in the target, and the final number. */
  onProgress: (done: number, total: number) => void
  /** Ends the copy before the next batch; the call rejects with its reason. */
  signal: AbortSignal
}

/**
 * Appends to the target what it lacks until the source has nothing new. All plants of the target are compared, also
 * earlier ones. `guard`: called before each transaction; throws to prevent it. `plants` and `checksum` (SHA-256 in hex
 * over a line per plant, see `lineOf`) are of the whole log, in both stores; `progress`: the notes of imports into it.
 * Throws StoreRefused when the target's log is not a beginning of the source's.
 */
export async function copyPlants(
  source: StoreView,
  target: Target,
  { batchPlants, guard, onProgress, signal }: CopyOptions & { guard: () => Promise<void> },
) {
  const checksum = createHash('sha256')
  const total = await source.head()
  const { plants: readBack } = target.upkeep
  const { position: held } = await target.log.head()
  if (held > total)
    throw new StoreRefused(`--to holds ${count(held, 'plant')}, --from only ${separate(total)}`)
  let [done, added] = [0, 0]
  for (;;) {
    signal.throwIfAborted()
    const plants = await source.plants(behind(done), batchPlants)
    // Behind the last batch the target must have no more plants, so look there, too.
    const there = await readBack(behind(done), plants.length || 1)
    checksum.update(compare(there, plants.slice(0, there.length), done))
    done += there.length
    const missing = plants.slice(there.length)
    if (missing.length > 0) {
      await guard()
      await target.log.append(missing.map(({ id, item }) => ({ item, id: id ?? undefined })))
      checksum.update(compare(await readBack(behind(done), missing.length), missing, done))
      done += missing.length
      added += missing.length
    }
    onProgress(done, Math.max(done, total))
    if (plants.length > 0) continue
    // Notes that are read between two looks at the same end are of that end.
    const progress = await source.notes(noteKeys)
    if ((await source.head()) === done)
      return { plants: done, added, checksum: checksum.digest('hex'), progress }
  }
}

const behind = (after: number) => ({ after, last: Number.MAX_SAFE_INTEGER })

/** Compares the plants after `after`, and returns their text. Throws StoreRefused when they differ. */
function compare(copied: StoredPlant[], plants: StoredPlant[], after: number): string {
  const text = formatPlants(plants)
  if (formatPlants(copied) === text) return text
  throw new StoreRefused(
    `from plant ${after + 1} on, --to is no copy of --from; or something else writes to it`,
  )
}

function formatPlants(plants: StoredPlant[]): string {
  return plants.map(({ position, id, item }) => `${lineOf(position, id, item)}\n`).join('')
}
