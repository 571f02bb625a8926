// The time-outs, which depend on one another, in milliseconds; and waiting with one.

/** Time that one attempt has. */
export const attemptMs = 2000
/** No attempt begins with less time left than this. */
export const shortestAttemptMs = 500
/** Time that the server waits for a lock: shorter than an attempt, so that abandoned sessions do not pile up there. */
export const lockMs = 1500
/** The server ends a session that is idle within a transaction for this long. */
export const idleInTransactionMs = 2000
/** The server ends the session of a client that acknowledges nothing for this long. */
export const vanishedMs = 3000
/** The first and the longest pause between two attempts to connect. */
export const pauseMs = 50
export const longestPauseMs = 1000
/** A server that had its standbys is believed for this long: promoting another one and connecting to it takes longer. */
export const backedMs = 5

/** Settles like `work`, or rejects after `ms` with an error that is made then. The outcome of `work` is ignored then. */
export async function withTimeout<T>(work: Promise<T>, ms: number, makeError: () => unknown): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(makeError()), Math.max(0, ms))
  return Promise.race([work, promise]).finally(() => clearTimeout(timer))
}
