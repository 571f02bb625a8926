// Opens a store by its URL.
import type { Store, StoreOptions } from './store.ts'

/**
 * Opens the store at a `file:` (SQLite) or `postgres://` URL, and brings its schema up to date.
 * Throws StoreRefused when what is there is no plant store, or a newer one.
 */
export async function openStore(url: string, options: StoreOptions): Promise<Store> {
  if (options.port) return (await import('./sqlite/engine.ts')).openSharedSqlite(options.port, options)
  // An engine that is not used is not loaded: its driver takes longer than the rest.
  if (url.startsWith('file:')) return (await import('./sqlite/engine.ts')).openSqlite(url, options)
  return (await import('./postgres/engine.ts')).openPostgres(url, options)
}
