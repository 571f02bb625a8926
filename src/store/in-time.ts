// Time limits for the store, and sharing of concurrent equal work.
import { type FailedOutcome, StoreUnavailable } from './errors.ts'

/** Time within which the store answers, or the request fails. */
export const storeLimitMs = 4500

/** Settles as `work` does; rejects with StoreUnavailable and this outcome if it takes longer than `limitMs`. */
export function inTime<T>(work: Promise<T>, limitMs = storeLimitMs, outcome: FailedOutcome = 'unread') {
  return withTimeout(work, limitMs, () => new StoreUnavailable(outcome, 'the store timed out'))
}

/** Settles as `work` does, or rejects after `ms` with an error that is made then. */
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
