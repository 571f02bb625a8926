// Waiting for a database that is being opened, but not for longer than a request has time.
import { withTimeout } from '../../runtime/with-timeout.ts'
import { StoreUnavailable } from '../store.ts'

/** Rejects with StoreUnavailable when `work` is not done at `deadlineMs` (of `performance.now()`). */
export async function within<T>(work: Promise<T>, deadlineMs: number): Promise<T> {
  /* c8 ignore next 3: a file that takes seconds to be opened */
  return await withTimeout(work, deadlineMs - performance.now(), () => {
    throw new StoreUnavailable('nothing-added', 'the database is still being opened')
  })
}
