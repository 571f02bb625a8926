// Time limits for the store, and sharing of concurrent work.
import { type FailedOutcome, StoreUnavailable } from './errors.ts'

/** Time limit of a request to the store. */
export const storeLimitMs = 4500

/** Settles like `work`; rejects with StoreUnavailable and this outcome if `work` takes longer than `limitMs`. */
export const inTime = <T>(work: Promise<T>, limitMs = storeLimitMs, outcome: FailedOutcome = 'unread') =>
  withTimeout(work, limitMs, () => new StoreUnavailable(outcome, 'the store timed out'))

/** Settles like `work`, or rejects after `ms` with the result of `makeError`. */
export function withTimeout<T>(work: Promise<T>, ms: number, makeError: () => unknown): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(makeError()), Math.max(0, ms))
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** Returns a function that runs `work`. Concurrent callers share one run. */
export function shareRun<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined
  return () => (running ??= work().finally(() => (running = undefined)))
}
