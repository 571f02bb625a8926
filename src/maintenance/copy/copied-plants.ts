// Copies the plants of a log batch by batch; each batch is read back at once and compared with the source.
import { createHash } from 'node:crypto'
import { count, separate } from '../../runtime/count.ts'
import { lineOf } from '../../store/format/checksum.ts'
import { type Row, type Sql, type Store, StoreRefused } from '../../store/store.ts'
import { findHead, type StoreView, selectRows } from '../../store/view.ts'
import { readProgress } from './copied-tables.ts'

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
 * Appends to the target what it lacks until the source has nothing new. All plants of the target are compared, also
 * earlier ones. `plants` and `checksum` (SHA-256 in hex over a line per plant, see `lineOf`) are of the whole log, in
 * both stores; `progress`: rows of `meta` that note imports into it. Throws StoreRefused when the target's log is not a beginning of the source's.
 */
export async function copyPlants(
  source: StoreView,
  target: Store,
  { batchPlants, guard, onProgress, signal }: CopyPlantsOptions,
): Promise<{ plants: number; added: number; checksum: string; progress: Row[] }> {
  const checksum = createHash('sha256')
  const total = await findHead(source)
  const { position: held } = await target.log.head()
  if (held > total)
    throw new StoreRefused(`--to holds ${count(held, 'plant')}, --from only ${separate(total)}`)
  let [done, added] = [0, 0]
  for (;;) {
    signal.throwIfAborted()
    const plants = await selectRows(source, columns, `${following} LIMIT ${batchPlants}`, [done])
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
    if (plants.length > 0) continue
    // The progress of imports counts the plants of its moment, neither more nor fewer.
    const { head, progress } = await readProgress(source)
    if (head === done) return { plants: done, added, checksum: checksum.digest('hex'), progress }
  }
}

const columns = ['position', 'id', 'item']
const following = 'FROM plants WHERE position > $1 ORDER BY position'

function readPlants(sql: Sql, after: number, size: number): Promise<Row[]> {
  return sql.select(`SELECT ${columns} ${following} LIMIT ${size}`, [after])
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
