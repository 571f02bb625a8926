// Copies the plants of a log batch by batch; each batch is read back at once and compared with the source.
import { createHash } from 'node:crypto'
import { count, separate } from '../../runtime/count.ts'
import { lineOf } from '../../store/format/checksum.ts'
import { type Row, type Sql, type Store, StoreRefused } from '../../store/store.ts'
import { findHead, type StoreView, selectRows } from '../../store/view.ts'
import type { Source } from './source.ts'

export type CopyPlantsOptions = {
  /** Plants read, appended in one transaction and read back at a time. */
  batchPlants: number
  /** Called before each transaction; throws to prevent it. */
  guard: () => Promise<void>
  /** Called with the number of plants that are certainly in the target, and the final number. */
  onProgress: (done: number, total: number) => void
  /** Ends the copy before the next batch; the call rejects with its reason. */
  signal: AbortSignal
}

/**
 * `plants` and `checksum` (SHA-256 in hex over a line per plant, see `lineOf`) are of the whole log, in both stores.
 */
export type CopiedPlants = { plants: number; added: number; checksum: string }

/**
 * Appends to the target what it lacks until the source has nothing new. All plants of the target are compared, also
 * earlier ones. Throws StoreRefused when the target's log is not a beginning of the source's.
 */
export async function copyPlants(
  source: Source,
  target: Store,
  { batchPlants, guard, onProgress, signal }: CopyPlantsOptions,
): Promise<CopiedPlants> {
  const checksum = createHash('sha256')
  const total = await findHead(source.view)
  const { position: held } = await target.log.head()
  if (held > total)
    throw new StoreRefused(`--to holds ${count(held, 'plant')}, --from only ${separate(total)}`)
  let done = 0
  let added = 0
  for await (const plants of readBatches(source.view, batchPlants)) {
    // Behind the last batch the target must have no more plants, so look there, too.
    const there = await readPlants(target.sql, done, plants.length || 1)
    checksum.update(compare(there, plants.slice(0, there.length), done))
    done += there.length
    const missing = plants.slice(there.length)
    if (missing.length > 0) {
      await guard()
      await target.log.append(missing.map(toEntry))
      checksum.update(compare(await readPlants(target.sql, done, missing.length), missing, done))
      done += missing.length
      added += missing.length
    }
    onProgress(done, Math.max(done, total))
    signal.throwIfAborted()
  }
  return { plants: done, added, checksum: checksum.digest('hex') }
}

const following = 'FROM plants WHERE position > $1 ORDER BY position'

/** The whole log, read a batch ahead; the last batch is empty. */
async function* readBatches(view: StoreView, size: number): AsyncGenerator<Row[]> {
  const read = (after: number) =>
    selectRows(view, ['position', 'id', 'item'], `${following} LIMIT ${size}`, [after])
  let plants = await read(0)
  while (plants.length > 0) {
    const next = read(Number(plants.at(-1)?.position))
    // A rejection is handled when the batch is awaited, if it ever is.
    next.catch(() => {})
    yield plants
    plants = await next
  }
  yield plants
}

function readPlants(sql: Sql, after: number, size: number): Promise<Row[]> {
  return sql.select(`SELECT position, id, item ${following} LIMIT ${size}`, [after])
}

/** Compares the plants after `after`, and returns their text. Throws StoreRefused when they differ. */
function compare(copied: Row[], plants: Row[], after: number): string {
  const text = formatPlants(plants)
  if (formatPlants(copied) === text) return text
  throw new StoreRefused(
    `from plant ${after + 1} on, --to is no copy of --from; or something else writes to it`,
  )
}

function formatPlants(plants: Row[]): string {
  return plants
    .map(({ position, id, item }) => `${lineOf(position as number, id as number | null, item as string)}\n`)
    .join('')
}

function toEntry({ id, item }: Row) {
  return { item: String(item), id: id === null ? undefined : Number(id) }
}
