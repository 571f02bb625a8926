// The source of a copy. It is only read, and may be of an older version with a service running on it.

import { openView } from '../../store/open.ts'
import { StoreRefused } from '../../store/store.ts'
import type { StoreView } from '../../store/view.ts'

/** `id`: of the store. */
export type Source = { id: string; view: StoreView }

/** Throws StoreRefused when there is no store, or when it is a standby, which may lag behind its primary. */
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
