// Stores of the engines that speak SQL, by which tests look and change behind the back of the service.
import type { StoreOptions } from '../../src/store/engine.ts'
import * as engines from '../../src/store/engines.ts'
import type { SqlStore } from '../../src/store/sql/sql.ts'

export type Store = SqlStore

/** Opens the store at a URL of SQLite or PostgreSQL. */
export async function openStore(url: string, options: StoreOptions): Promise<Store> {
  return (await engines.openStore(url, options)) as Store
}
