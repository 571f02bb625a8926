// A store that fails when a test wants it to, as a database does that goes away for a moment.
import pino from 'pino'
import type { Test } from 'tap'
import { type FailedOutcome, StoreUnavailable } from '../../src/store/errors.ts'
import { sqlite } from './engines.ts'
import { openStore, type Store } from './sql-store.ts'

/** `unknown`: plants are added, and nobody is told. `broken`: an error that nobody foresaw. */
export type StoreFault = FailedOutcome | 'broken'

/** Opens a store on a new SQLite file; for each of `faults`, in order, one addition or list fails. */
export async function openFailing(t: Test): Promise<{ store: Store; faults: StoreFault[] }> {
  const store = await openStore(await sqlite.createDatabase(t), { logger: pino({ level: 'silent' }) })
  const faults: StoreFault[] = []
  return { store: makeFailing(store, faults), faults }
}

function makeFailing(store: Store, faults: StoreFault[]): Store {
  const { log } = store
  const failing: Store['log'] = {
    async append(entries, deadlineMs) {
      const fault = faults.shift()
      if (fault === undefined) return log.append(entries, deadlineMs)
      if (fault === 'unknown') await log.append(entries, deadlineMs)
      throw makeError(fault)
    },
    head() {
      const fault = faults.shift()
      if (fault !== undefined) throw makeError(fault)
      return log.head()
    },
    read: (after, last, epoch) => log.read(after, last, epoch),
  }
  return { ...store, log: failing }
}

function makeError(fault: StoreFault): Error {
  const message = 'as the test wants it'
  return fault === 'broken' ? new Error(message) : new StoreUnavailable(fault, message)
}
