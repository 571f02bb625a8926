// Claims the target of a copy. It takes over the id of the source's store, so that ETags and cursors stay valid, and an
// interrupted copy is recognized.
import { randomUUID } from 'node:crypto'
import { setMark } from '../../store/marks.ts'
import { type Store, StoreRefused } from '../../store/store.ts'
import type { StoreView } from '../../store/view.ts'
import type { Source } from './source.ts'

/** `guard` throws when another copy has taken the target over; `release` ends the claim. */
export type Claim = { guard(): Promise<void>; release(): Promise<void> }

/**
 * Takes over the id of the source's store, unless the target holds plants or tokens of another store. Run even with
 * the same id: on PostgreSQL its row lock waits for the last COMMIT of a copy that was killed.
 */
const adopt = `
  UPDATE meta SET value = $1 WHERE key = 'store' AND
    (value = $1 OR NOT EXISTS (SELECT 1 FROM plants) AND NOT EXISTS (SELECT 1 FROM tokens))`

/**
 * Gives the target the id of the source's store; if that changes it, the store must be opened again. Throws
 * StoreRefused when it holds anything but a copy of the source.
 */
export async function renameTarget(source: Source, target: Store): Promise<void> {
  if ((await target.sql.execute(adopt, [source.id])) === 0)
    throw new StoreRefused(
      '--to holds plants or tokens that are not of --from: a copy needs an empty database',
    )
}

/** Throws StoreRefused when the target holds anything but a copy of the source, or is the source itself. */
export async function claimTarget(source: Source, target: Store): Promise<Claim> {
  await renameTarget(source, target)
  const run = randomUUID()
  const release = async () => {
    await target.sql.execute("DELETE FROM meta WHERE key = 'copy' AND value = $1", [run])
  }
  await target.sql.execute(setMark("'copy'", '$1'), [run])
  if (await isMarked(source.view, run)) {
    await release()
    throw new StoreRefused('--from and --to are the same database')
  }
  return {
    release,
    async guard() {
      if (!(await isMarked(target.sql, run))) throw new StoreRefused('another copy to --to has begun')
    },
  }
}

async function isMarked(store: Store['sql'] | StoreView, run: string): Promise<boolean> {
  return (await store.select("SELECT key FROM meta WHERE key = 'copy' AND value = $1", [run])).length > 0
}
