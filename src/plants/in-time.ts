// Bounds the time for which a list waits for the store.
import { StoreUnavailable } from '../store/errors.ts'

/** Time within which the store answers, or the request fails. */
export const storeLimitMs = 4500

/** Settles as `work` does; rejects with `unread` when it takes longer than the store may. */
export function inTime<T>(work: Promise<T>, limitMs = storeLimitMs): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new StoreUnavailable('unread', 'the store did not answer in time'))
    const timer = setTimeout(late, limitMs)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
