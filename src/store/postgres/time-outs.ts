// Time-outs in milliseconds. They depend on one another.

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
