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
    async append(entries, options) {
      const fault = faults.shift()
      if (fault === undefined) return log.append(entries, options)
      if (fault === 'unknown') await log.append(entries, options)
      throw makeError(fault)
    },
    head(positions) {
      const fault = faults.shift()
      if (fault !== undefined) throw makeError(fault)
      return log.head(positions)
    },
    read: (after, last, mark) => log.read(after, last, mark),
  }
  return { ...store, log: failing }
}

function makeError(fault: StoreFault): Error {
  const message = 'as the test wants it'
  return fault === 'broken' ? new Error(message) : new StoreUnavailable(fault, message)
}
