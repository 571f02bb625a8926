// The engines: each is a folder, and a row here. An engine is loaded on demand, as its driver takes longer than the
// rest.
import type { Engine, Store, StoreOptions, StoreView } from './engine.ts'
import { StoreRefused } from './errors.ts'
import { findUrlFault } from './postgres/hosts.ts'
import { findPathFault, sqlitePath } from './sqlite/files/path.ts'

export const engines: Engine[] = [
  {
    name: 'SQLite',
    prefix: 'file:',
    scheme: /^file:./,
    findFault: findPathFault,
    open: async (url, options) => (await import('./sqlite/sqlite-engine.ts')).openSqlite(url, options),
    view: async (url) => (await import('./sqlite/sqlite-view.ts')).openSqliteView(url),
    path: sqlitePath,
  },
  {
    name: 'PostgreSQL',
    prefix: 'postgres://',
    scheme: /^postgres(ql)?:\/\/./,
    findFault: findUrlFault,
    open: async (url, options) => (await import('./postgres/postgres-engine.ts')).openPostgres(url, options),
    view: async (url) => (await import('./postgres/postgres-view.ts')).openPostgresView(url),
  },
]

/** Finds the engine of a URL. Throws StoreRefused when there is none. */
export function engineOf(url: string): Engine {
  const engine = engines.find(({ scheme }) => scheme.test(url))
  if (engine) return engine
  throw new StoreRefused('the URL of the database has an unknown scheme')
}

/** Opens the store at a URL. */
export async function openStore(url: string, options: StoreOptions): Promise<Store> {
  return engineOf(url).open(url, options)
}

/** Opens the store at a URL for reading only. */
export async function openView(url: string): Promise<StoreView> {
  return engineOf(url).view(url)
}

/** Opens the store at a URL for reading only, for as long as the work takes. */
export async function withView<T>(url: string, work: (view: StoreView) => Promise<T>): Promise<T> {
  const view = await openView(url)
  try {
    return await work(view)
  } finally {
    await view.close()
  }
}
