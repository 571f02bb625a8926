// Reads the status of a store without changing it: its contents, its size, and the processes that use it.
import type { EngineStatus } from '../../store/engine-status.ts'
import { engineOf } from '../../store/engines.ts'
import { epochsVersion } from '../../store/format/migrations.ts'
import { openView } from '../../store/open.ts'
import type { StoreView } from '../../store/view.ts'
import { build } from '../../version.ts'

export type StoreStatus = EngineStatus & {
  /** Version of this command, not of a running service. */
  version: string
  engine: string
  schemaVersion: number
  store: string
  head: number
  /** Number of epochs; 0 in a store of an older version without them. */
  epochs: number
  tokens: { active: number; expired: number; revoked: number }
}

/** Throws StoreRefused when there is no store at the URL. */
export async function readStatus(url: string, now = Date.now()): Promise<StoreStatus> {
  const view = await openView(url)
  try {
    const contents = await readContents(view, now)
    const { name: engine } = engineOf(url)
    return { version: build, engine, schemaVersion: view.version, ...contents, ...(await view.readStatus()) }
  } finally {
    await view.close()
  }
}

const contents = `SELECT (SELECT value FROM meta WHERE key = 'store'),
  (SELECT coalesce(max(position), 0) FROM plants),
  (SELECT count(*) FROM tokens WHERE revoked_at IS NOT NULL),
  (SELECT count(*) FROM tokens WHERE revoked_at IS NULL AND expires_at <= $1),
  (SELECT count(*) FROM tokens WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1))`

async function readContents(view: StoreView, now: number) {
  const [row] = await view.select<[string, number, number, number, number]>(contents, [now])
  const [store, head, revoked, expired, active] = row as [string, number, number, number, number]
  const [[epochs] = [0]] =
    view.version < epochsVersion
      ? []
      : await view.select<[number]>('SELECT count(DISTINCT start) FROM epochs')
  return { store, head, epochs, tokens: { active, expired, revoked } }
}
