// Copies a whole store into another database. That takes over the id of the source's store, so that ETags and cursors
// stay valid, and an interrupted copy is recognized.
import { randomUUID } from 'node:crypto'
import { type Sql, type Store, StoreRefused } from '../../store/store.ts'
import type { StoreView } from '../../store/view.ts'
import { type CopyPlantsOptions, copyPlants } from './copied-plants.ts'
import { checkTokens, copyEpochs, copyProgress, copyTokens } from './copied-tables.ts'

/**
 * Copies the store at `source`, which may be of an older version with a service running on it. Each step can be
 * repeated. Throws StoreRefused when the target holds anything but a copy of the source, or is the source itself.
 */
export async function copyStore(source: StoreView, target: Store, options: Omit<CopyPlantsOptions, 'guard'>) {
  const { guard, release } = await claimTarget(source, target.sql)
  await checkTokens(source, target.sql)
  const { progress, ...copied } = await copyPlants(source, target, { ...options, guard })
  const tokens = await copyTokens(source, target.sql)
  await copyEpochs(source, target.sql, copied.plants)
  await copyProgress(progress, target.sql)
  await release()
  return { ...copied, tokens }
}

/**
 * Takes over the id of the source's store, unless the target holds plants or tokens of another store. Run even with
 * the same id: on PostgreSQL its row lock waits for the last COMMIT of a copy that was killed.
 */
const adopt = `
  UPDATE meta SET value = $1 WHERE key = 'store' AND
    (value = $1 OR NOT EXISTS (SELECT 1 FROM plants) AND NOT EXISTS (SELECT 1 FROM tokens))`

/**
 * Opens the target, and gives it the id of the source's store. A store reads its id when it is opened, so one that gets
 * another is opened again. Throws StoreRefused when the source is a standby, which may lag behind its primary, or when
 * the target holds anything but a copy of the source.
 */
export async function openTarget(source: StoreView, open: () => Promise<Store>): Promise<Store> {
  const [[isStandby, id] = []] = await source.select<[number, string]>(
    `SELECT ${source.dialect.isStandby}, value FROM meta WHERE key = 'store'`,
  )
  if (isStandby) throw new StoreRefused('--from is a standby: name its primary')
  const target = await open()
  try {
    if ((await target.sql.execute(adopt, [String(id)])) === 0)
      throw new StoreRefused(
        '--to holds plants or tokens that are not of --from: a copy needs an empty database',
      )
    if (target.id === id) return target
  } catch (error) {
    await target.close()
    throw error
  }
  await target.close()
  return open()
}

/**
 * Marks the target as that of this copy. `guard` throws when another copy has taken it over; `release` removes the mark.
 */
async function claimTarget(source: StoreView, target: Sql) {
  const run = randomUUID()
  const isMarked = async (store: Sql | StoreView) =>
    (await store.select("SELECT key FROM meta WHERE key = 'copy' AND value = $1", [run])).length > 0
  const release = () => target.execute("DELETE FROM meta WHERE key = 'copy' AND value = $1", [run])
  const mark = `INSERT INTO meta (key, value) VALUES ('copy', $1)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value`
  await target.execute(mark, [run])
  if (await isMarked(source)) {
    await release()
    throw new StoreRefused('--from and --to are the same database')
  }
  const guard = async () => {
    if (!(await isMarked(target))) throw new StoreRefused('another copy to --to has begun')
  }
  return { guard, release }
}
