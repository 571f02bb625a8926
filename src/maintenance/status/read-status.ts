// Reads the status of a store without changing it: its contents, its size, and the processes that use it.

import { build } from '../../runtime/version.ts'
import { engineOf, withView } from '../../store/engines.ts'

export type StoreStatus = Awaited<ReturnType<typeof readStatus>>

/**
 * `version`: of this command, not of a running service; `epochs`: 0 in a store of an older version without them. Throws
 * StoreRefused when there is no store at the URL.
 */
export function readStatus(url: string, now = Date.now()) {
  return withView(url, async (view) => {
    const tokens = await view.tokens()
    const current = tokens.filter(({ revokedAt }) => revokedAt === null)
    const active = current.filter(({ expiresAt }) => expiresAt === null || expiresAt > now).length
    const starts = new Set((await view.epochs()).map(({ start }) => start))
    return {
      version: build,
      engine: engineOf(url).name,
      schemaVersion: view.version,
      store: await view.id(),
      head: await view.head(),
      epochs: starts.size,
      tokens: { active, expired: current.length - active, revoked: tokens.length - current.length },
      ...(await view.readStatus()),
    }
  })
}
