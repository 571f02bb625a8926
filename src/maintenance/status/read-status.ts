// Reads the status of a store without changing it: its contents, its size, and the processes that use it.

import { build } from '../../runtime/version.ts'
import { engineOf } from '../../store/engines.ts'
import { epochsVersion } from '../../store/format/migrations.ts'
import { withView } from '../../store/open.ts'

export type StoreStatus = Awaited<ReturnType<typeof readStatus>>

const contents = `SELECT (SELECT value FROM meta WHERE key = 'store'),
  (SELECT coalesce(max(position), 0) FROM plants),
  (SELECT count(*) FROM tokens WHERE revoked_at IS NOT NULL),
  (SELECT count(*) FROM tokens WHERE revoked_at IS NULL AND expires_at <= $1),
  (SELECT count(*) FROM tokens WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1))`

/**
 * `version`: of this command, not of a running service; `epochs`: 0 in a store of an older version without them. Throws
 * StoreRefused when there is no store at the URL.
 */
export function readStatus(url: string, now = Date.now()) {
  return withView(url, async (view) => {
    const [row] = await view.select(contents, [now])
    const [store, head, revoked, expired, active] = row as [string, number, number, number, number]
    const hasEpochs = view.version >= epochsVersion
    const starts = hasEpochs ? await view.select('SELECT DISTINCT start FROM epochs') : []
    return {
      version: build,
      engine: engineOf(url).name,
      schemaVersion: view.version,
      store,
      head,
      epochs: starts.length,
      tokens: { active, expired, revoked },
      ...(await view.readStatus()),
    }
  })
}
