// Opens a store by its URL.
import { engineOf } from './engines.ts'
import type { Store, StoreOptions } from './store.ts'
import type { StoreView } from './view.ts'

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
