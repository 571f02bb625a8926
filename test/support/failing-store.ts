// A store that fails when a test wants it to, as a database does that goes away for a moment.
import pino from 'pino'
import type { Test } from 'tap'
import { openStore } from '../../src/store/open.ts'
import { type Lost, type Store, StoreUnavailable } from '../../src/store/store.ts'
import { sqlite } from './engines.ts'

/** Opens a store on a new SQLite file; it fails once for each of `lost`, in order. */
export async function openFailing(t: Test): Promise<{ store: Store; lost: Lost[] }> {
  const store = await openStore(await sqlite.createDatabase(t), { logger: pino({ level: 'silent' }) })
  const lost: Lost[] = []
  return { store: makeFailing(store, lost), lost }
}

/** When the outcome is to be unknown, the plants are added all the same. */
function makeFailing(store: Store, lost: Lost[]): Store {
  const { log } = store
  const failing: Store['log'] = {
    async append(entries, deadlineMs) {
      const outcome = lost.shift()
      if (outcome === undefined || outcome === 'unknown') {
        const outcomes = await log.append(entries, deadlineMs)
        if (outcome === undefined) return outcomes
      }
      throw new StoreUnavailable(outcome, 'as the test wants it')
    },
    head() {
      if (lost[0] !== 'unread') return log.head()
      lost.shift()
      throw new StoreUnavailable('unread', 'as the test wants it')
    },
    read: (after, last, epoch) => log.read(after, last, epoch),
  }
  const { id, sql } = store
  return { id, sql, log: failing, ready: () => store.ready(), close: () => store.close() }
}
