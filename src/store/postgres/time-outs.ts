// Time-outs in milliseconds, which depend on one another.

/** Time limit of one attempt. */
export const attemptMs = 2000
/** Minimum time left for an attempt to begin. */
export const shortestAttemptMs = 500
/** Lock time-out of the server. It is shorter than an attempt, so that abandoned sessions do not accumulate. */
export const lockMs = 1500
/** The server ends a session that is idle in a transaction for this time. */
export const idleInTransactionMs = 2000
/** The server ends the session of a client that does not acknowledge data or keepalives for this time. */
export const vanishedMs = 3000
/** The first and the longest pause between two attempts to connect. */
export const pauseMs = 50
export const longestPauseMs = 1000
