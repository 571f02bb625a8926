// Opens a store by its URL.
import { openPostgres } from './postgres/engine.ts'
import { openSqlite } from './sqlite/engine.ts'
import type { Store, StoreOptions } from './store.ts'

/**
 * Opens the store at a `file:` (SQLite) or `postgres://` URL, and brings its schema up to date.
 * Throws StoreRefused when what is there is no plant store, or a newer one.
 */
export function openStore(url: string, options: StoreOptions): Promise<Store> {
  return url.startsWith('file:') ? openSqlite(url, options) : openPostgres(url, options)
}
