// Bounds the time for which a request waits for the store.
import { type FailedOutcome, StoreUnavailable } from './errors.ts'

/** Time within which the store answers, or the request fails. */
export const storeLimitMs = 4500

/** Settles as `work` does; rejects with StoreUnavailable and this outcome when it takes longer than the store may. */
export function inTime<T>(
  work: Promise<T>,
  limitMs = storeLimitMs,
  outcome: FailedOutcome = 'unread',
): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new StoreUnavailable(outcome, 'the store did not answer in time'))
    const timer = setTimeout(late, limitMs)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
