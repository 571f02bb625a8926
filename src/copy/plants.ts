// The plants of one log, put into another: batch by batch, each read back at once and held against the source.
import { createHash } from 'node:crypto'
import { type Row, type Sql, type Store, StoreRefused } from '../store/store.ts'

export type CopyPlantsOptions = {
  /** How many plants are read, appended in one transaction and read back at a time. */
  batchPlants: number
  /** Is called before every transaction, and throws when there must be no more. */
  guard: () => Promise<void>
  /** Is told how many plants are in the target for certain, and how many there will be. */
  onProgress: (done: number, total: number) => void
}

/** `plants` and `checksum` (SHA-256 in hex, see formatPlants) are of the whole log, the same in both stores. */
export type CopiedPlants = { plants: number; added: number; checksum: string }

/**
 * Appends to the target what it lacks of the source, until there is nothing new in the source. Every plant of the target
 * is compared, also those that were there. Throws StoreRefused when the target is not the beginning of the source.
 */
export async function copyPlants(
  source: Store,
  target: Store,
  { batchPlants, guard, onProgress }: CopyPlantsOptions,
): Promise<CopiedPlants> {
  const checksum = createHash('sha256')
  const held = await target.log.head()
  const total = await source.log.head()
  if (held > total) throw new StoreRefused(`--to holds ${held} plants, --from only ${total}`)
  let done = 0
  for await (const plants of readBatches(source.sql, batchPlants)) {
    const missing = plants.slice(Math.max(held - done, 0))
    if (missing.length > 0) {
      await guard()
      await target.log.append(missing.map(toEntry))
    }
    const text = formatPlants(plants)
    if (formatPlants(await readPlants(target.sql, done, plants.length)) !== text)
      throw new StoreRefused(`${name(done, plants)} of --to are not those of --from`)
    checksum.update(text)
    done += plants.length
    onProgress(done, Math.max(done, total))
  }
  const end = await target.log.head()
  if (end !== done)
    throw new StoreRefused(`${end - done} plants more are in --to: something else writes to it`)
  return { plants: done, added: done - held, checksum: checksum.digest('hex') }
}

/** The whole log, a batch ahead of who takes it. */
async function* readBatches(sql: Sql, count: number): AsyncGenerator<Row[]> {
  let next = readPlants(sql, 0, count)
  for (;;) {
    const plants = await next
    const last = plants.at(-1)
    if (last === undefined) return
    next = readPlants(sql, Number(last.position), count)
    // A fault shows when the batch is waited for, if ever.
    next.catch(() => {})
    yield plants
  }
}

function readPlants(sql: Sql, after: number, count: number): Promise<Row[]> {
  const text = `SELECT position, id, item FROM plants WHERE position > $1 ORDER BY position LIMIT ${count}`
  return sql.select(text, [after])
}

/** A line a plant: position, id (or nothing) and item, with tabs between them, which no item holds. */
function formatPlants(plants: Row[]): string {
  return plants.map(({ position, id, item }) => `${position}\t${id ?? ''}\t${item}\n`).join('')
}

function toEntry({ id, item }: Row) {
  return { item: String(item), id: id === null ? undefined : Number(id) }
}

function name(after: number, { length }: Row[]): string {
  return `plants ${after + 1} to ${after + length}`
}
