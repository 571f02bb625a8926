// The distributed engine.
import { type Store, type StoreOptions, StoreRefused } from './store.ts'

/** Opens the store on PostgreSQL. */
export async function openPostgres(url: string, _options: StoreOptions): Promise<Store> {
  throw new StoreRefused(`not there yet: ${url}`)
}
