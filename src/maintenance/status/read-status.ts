// The state of a store, by reading alone: what is in it, how large it is, and who works on it.
import { openView, type StoreView } from '../store/view.ts'

/**
 * Whether a service runs on the database. `running` is null where that cannot be told; `by` names the processes or
 * clients that have it open.
 */
export type ServiceStatus = { running: boolean | null; by: string[] }

/** A standby as its primary sees it; null is what the role of the URL may not see, or what was not measured yet. */
export type Standby = {
  name: string
  address: string | null
  state: string | null
  sync: string | null
  lagBytes: number | null
  lagSeconds: number | null
}

/** `server`: host:port of the one that answered. */
export type ClusterStatus = { server: string; role: 'primary' | 'standby'; standbys: Standby[] }

/** What an engine knows in its own way. `bytes`: on disk. */
export type EngineStatus = {
  engineVersion: string
  bytes: number
  service: ServiceStatus
  cluster?: ClusterStatus
}

export type StoreStatus = EngineStatus & {
  engine: StoreView['engine']
  schemaVersion: number
  store: string
  head: number
  /** How many there have been; 0 in a store of a version that had none yet. */
  epochs: number
  tokens: { active: number; expired: number; revoked: number }
}

/** Throws StoreRefused when there is no store at the URL. */
export async function readStatus(url: string, now = Date.now()): Promise<StoreStatus> {
  const view = await openView(url)
  try {
    const { engine, version } = view
    const ofEngine = await (engine === 'SQLite'
      ? (await import('./sqlite.ts')).readSqliteStatus(view, url)
      : (await import('./postgres.ts')).readPostgresStatus(view))
    return { engine, schemaVersion: version, ...(await readContents(view, now)), ...ofEngine }
  } finally {
    await view.close()
  }
}

const contents = `SELECT (SELECT value FROM meta WHERE key = 'store'),
  (SELECT coalesce(max(position), 0) FROM plants),
  (SELECT count(*) FROM tokens WHERE revoked_at IS NOT NULL),
  (SELECT count(*) FROM tokens WHERE revoked_at IS NULL AND expires_at <= $1),
  (SELECT count(*) FROM tokens WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1))`

/** The schema version since which there are epochs. */
const epochsSince = 2

async function readContents(view: StoreView, now: number) {
  const [row] = await view.select<[string, number, number, number, number]>(contents, [now])
  const [store, head, revoked, expired, active] = row as [string, number, number, number, number]
  const [[epochs] = [0]] =
    view.version < epochsSince ? [] : await view.select<[number]>('SELECT count(*) FROM epochs')
  return { store, head, epochs, tokens: { active, expired, revoked } }
}
