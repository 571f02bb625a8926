// Limits and time-outs that depend on one another, in relations that test/service/limits.test.ts holds them to. Times are
// milliseconds.

/** Promised time from the full arrival of a request to its answer. */
export const promisedMs = 5000
/** Deadline of a request. The rest of the promised time is for the sweep that finds it, and for sending the answer. */
export const requestMs = 4800
/** Deadline of the store within it, so that the store's own error, which says more, comes first. */
export const storeLimitMs = 4500
/** Interval of the sweep that finds late requests. */
export const lateSweepMs = 100
/** Time that an attempt waits for one server of a cluster. */
export const attemptMs = 2000
/** No attempt is made with less time left than this. */
export const shortestAttemptMs = 500
/** Server-side time-out for locks, shorter than an attempt, so that abandoned sessions do not pile up there. */
export const lockMs = 1500
/** The server ends a session that is idle within a transaction for this long. */
export const idleInTransactionMs = 2000
/** The server ends the session of a client that acknowledges nothing for this long. */
export const vanishedMs = 3000
/** Time between two attempts to connect to a cluster without a server, and what it grows to. */
export const pauseMs = 50
export const longestPauseMs = 1000
/** A server that had its standbys is believed for this long: it takes longer to promote another and to connect to it. */
export const backedMs = 5
/** Connections for reading pages, reads per token that may wait for one, and queries in progress per connection. */
export const readConnections = 3
export const maxWaitingReads = 200
export const maxLookups = 1000

/** Time to wait for another program's lock on a SQLite file when it is opened or checked for being writable. */
export const sqliteLockMs = 2000
/** Interval of the checks of the database's files while nothing is written. */
export const fileCheckMs = 1000
/** A batch stops waiting for SQLite's lock this long before its deadline, so that SQLite's own error comes first. */
export const sqliteMarginMs = 100
/** Time that a read of SQLite waits for a lock, which is held during recovery only. It blocks the event loop. */
export const sqliteReadLockMs = 200

/** Time for the head of a request to arrive, and for all of it. */
export const headersMs = 10_000
export const receiveMs = 20_000
/** A connection is reset when its client takes none of the answer bytes that wait for it for this long. */
export const stalledMs = 30_000
export const stalledSweepMs = 1000
/** The same for answers that need no token. */
export const openStalledMs = 5000
/** How long to wait for a request before answering 503 to a connection that is refused. */
export const refusalMs = 200
/** After the last answer of a connection, what still arrives is read and dropped for this long, up to this much. */
export const lingerMs = 2000
export const lingerBytes = 16 * 2 ** 20
/** The most of such connections that wait to be read, one per turn of the event loop; further ones are cut. */
export const maxLingering = 64
/** A shutdown cuts requests in flight after the first, and ends at the latest after the second. */
export const drainMs = 8000
export const stopMs = 10_000
/** A signal this soon after the first is an echo of it: the process group, the launcher and npm all pass it on. */
export const echoMs = 500
/** Time for an interrupted command to end. */
export const interruptMs = 700
/** A thread counts as hung when its event loop has not turned for this long. */
export const hungMs = 10_000
/** Interval of a thread's heartbeats. */
export const beatMs = 1000
/** Verdicts on tokens, valid or not, are cached this long, and this many of them. */
export const verdictMs = 2000
export const maxVerdicts = 10_000
/** The same for valid tokens of an issuer, which cannot be revoked. */
export const issuedVerdictMs = 60_000
/** JWTs verified at once per thread, and those that may wait for that or for a key. */
export const verificationsAtOnce = 4
export const maxWaitingJwts = 1000
/** The longest JWT, the largest document of an issuer, and the most keys used of it. */
export const maxJwtLength = 8192
export const maxIssuerBytes = 256 * 1024
export const maxIssuerKeys = 64
/** Time for loading the keys of an issuer, and from the beginning of a load to that of the next; two in 10 seconds. */
export const issuerLoadMs = 2000
export const keysPauseMs = 5000
/** Age at which keys are loaded again, and up to which they are used while the issuer is unavailable. */
export const keysFreshMs = 300_000
export const keysStaleMs = 86_400_000
/** Time slice for requests in a row and for refusals in one turn of the event loop. */
export const turnMs = 10
/** Requests that wait for a look at the head; more of them would leave the processor's caches meanwhile. */
export const maxHeadRequests = 64
/** Time that `/readyz`, whose probes commonly wait a second, and `/metrics` wait for the store. */
export const readyMs = 600
export const gaugeMs = 500
/** Time that closing a store waits for a database that does not answer. */
export const storeCloseMs = 1500
/** Time for the last export of traces at a shutdown, beside the closing of the store: within a second in all. */
export const traceFlushMs = 900
/** Time that a shutdown waits for the reader of the log. */
export const logEndMs = 400

/** Shares of the file descriptors for connections, and for connections being refused. */
export const connectionShare = 0.45
export const refusedShare = 0.1
export const maxRefused = 1000
/** The log warns when fewer descriptors are left than this. */
export const fewestDescriptors = 4

/** The largest body, and the largest request target. */
export const maxBodyBytes = 16 * 1024
export const maxUrlBytes = 8 * 1024
/** The largest head of a request: its target, names and values together. */
export const maxHeaderBytes = 16 * 1024
/** The most plants of a page, and its largest size. */
export const pagePlants = 4000
export const pageBytes = 256 * 1024
/** Plants of a segment, which never changes because all stores have such segments, and its largest size. */
export const segmentPlants = 2000
export const segmentBytes = 224 * 1024
/** The most bytes of answers in flight. */
export const inFlightBytes = 128 * 2 ** 20
/** The most bytes of cached pages, and of unwritten lines of the log, beyond which lines are dropped. */
export const maxCachedBytes = 32 * 2 ** 20
export const maxLogBytes = 8 * 2 ** 20
/** The least share of the bytes in flight per thread. */
export const threadBytes = 8 * 2 ** 20
/** A token may hold at most this many times the bytes in flight that are left: for pages, and for longer lists. */
export const pageShare = 2
export const listShare = 1
/** Long lists that may read at one moment, which leaves a connection for pages. */
export const streamReads = 2
/** Compression jobs per HTTP thread; with one thread, half of Node's pool. */
export const codecJobs = 2
/** Approximate memory of a codec without its output. */
export const codecBytes = 2 ** 20
/** While this many pages are being compressed, others are compressed only for clients that accept nothing else. */
export const maxPreparedPages = 16
/** Pages per token that may wait for compression because their clients refuse the plain bytes. */
export const maxWaitingPages = 100
/** Long lists compressed at a time; further ones are sent plain where the client accepts that. */
export const maxCodedLists = 16
/** Outstanding requests of one connection. One more is its last. */
export const requestsPerConnection = 16
/** Bytes sent without a token on one connection. With more, it ends, and they count as in flight until then. */
export const openBytes = 64 * 1024
/** Approximate size of the head of an answer. */
export const headBytes = 512
/** The most unknown tokens that wait for the next look-up, and the tokens of one of its queries. */
export const unknownTokens = 4096
export const tokensPerQuery = 1024
/** Keys (tokens, or client addresses) in the memory of a rate limit; a power of two. */
export const ratedKeys = 2 ** 16
/** The longest `Authorization` kept with its connection: thousands of connections would hold megabytes. */
export const maxKeptLength = 1024
/** The window for repeated lines of the log, and the lines on connections that it allows. */
export const logWindowMs = 10_000
export const maxConnectionLines = 20
/** The window for the line on an X-Forwarded-For that is ignored. */
export const forwardedWindowMs = 3_600_000
/** The most plants that may wait for the next batch. */
export const maxWaitingPlants = 4096
/** The most plants in one transaction of a command, and the plants read at a time for a check or an export. */
export const maxBatchPlants = 20_000
export const scannedPlants = 1000
/** The largest values of settings for threads and seconds. */
export const maxThreads = 256
export const maxSeconds = 3600
