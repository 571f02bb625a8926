// The store that is copied. It is only read, as whatever version made it: a service of that version may run on it.

import { openView } from '../../store/open.ts'
import { StoreRefused } from '../../store/store.ts'
import type { StoreView } from '../../store/view.ts'

/** `id`: the name of the store. */
export type Source = { id: string; view: StoreView }

/** Throws StoreRefused when there is no store, and when it is a standby: that may lack what its primary has. */
export async function openSource(url: string): Promise<Source> {
  const view = await openView(url)
  try {
    const [[isStandby] = []] = await view.select(`SELECT ${view.dialect.isStandby}`)
    if (isStandby) throw new StoreRefused('--from is a standby: name its primary')
    const [[id] = []] = await view.select<[string]>("SELECT value FROM meta WHERE key = 'store'")
    return { id: String(id), view }
  } catch (error) {
    await view.close()
    throw error
  }
}
