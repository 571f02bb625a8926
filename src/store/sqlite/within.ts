// Waiting for a database that is being opened, but not for longer than a request has time.
import { StoreUnavailable } from '../store.ts'

/** Rejects with StoreUnavailable when `work` is not done at `deadlineMs` (of `performance.now()`). */
export async function within<T>(work: Promise<T>, deadlineMs: number): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    /* c8 ignore next: a file that takes seconds to be opened */
    () => late.reject(new StoreUnavailable('nothing-added', 'the database is still being opened')),
    deadlineMs - performance.now(),
  )
  return await Promise.race([work, late.promise]).finally(() => clearTimeout(timer))
}
