// Opens a store by its URL.
import { engineOf } from './engines.ts'
import type { Store, StoreOptions } from './store.ts'
import type { StoreView } from './view.ts'

/** Opens the store at a URL, as its engine does. */
export async function openStore(url: string, options: StoreOptions): Promise<Store> {
  return engineOf(url).open(url, options)
}

/** Opens the store at a URL to be read, and nothing else. */
export async function openView(url: string): Promise<StoreView> {
  return engineOf(url).view(url)
}
