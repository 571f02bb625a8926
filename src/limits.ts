// Every limit and time-out that must stand in a relation to another, and the relations. Times are milliseconds.

/** A request that is there in full is answered within this time, whatever its stages wait for. */
export const promisedMs = 5000
/** Its time is up before: the look for those whose time is up, like the answer itself, takes some of it. */
export const requestMs = 4800
/** The store takes this much of it at most: its own error comes first, and says more than that the time is up. */
export const storeLimitMs = 4500
/** Intervals of the sweeps for requests, and for those of the writer thread, that timed out. */
export const lateSweepMs = 100
export const overdueSweepMs = 100
/** One server of a cluster may keep one attempt waiting for this long. */
export const attemptMs = 2000
/** With less time left than this, no further attempt is made. */
export const shortestAttemptMs = 500
/** A wait for a lock ends on the server before the attempt does, so that no sessions without a client pile up there. */
export const lockMs = 1500
/** A session between two statements of a transaction that hears nothing for this long is ended by the server. */
export const idleInTransactionMs = 2000
/** A client that acknowledges nothing for this long has vanished: the server ends its session. */
export const vanishedMs = 3000
/** A server of an older timeline than one that was followed is believed only when no newer one answers meanwhile. */
export const handicapMs = 1000
/** Connections that read pages, reads of a token that may wait for one, and queries that one may have under way. */
export const readConnections = 3
export const maxWaitingReads = 200
export const maxLookups = 1000

/** Others may lock a SQLite file this long while it is opened, or checked for being writable. */
export const sqliteLockMs = 2000
/** Interval of the checks of the database's files while nothing is written. */
export const fileCheckMs = 1000
/** A batch waits for that lock until so long before its deadline: the database's own word comes first. */
export const sqliteMarginMs = 100
/** A read of SQLite holds up the event loop while it waits, which it does only beside a recovery. */
export const sqliteReadLockMs = 200

/** The head of a request, and all of it, must be there after this long. */
export const headersMs = 10_000
export const receiveMs = 20_000
/** A connection that moves no byte for this long while a request is at work is cut. */
export const stalledMs = 30_000
export const stalledSweepMs = 1000
/** How long to wait for a request before answering 503 to a connection that is refused. */
export const refusalMs = 200
/** After the last answer of a connection, so much of what is still being sent is read and dropped, for so long. */
export const lingerMs = 2000
export const lingerBytes = 16 * 2 ** 20
/** Connections read like that per turn of the event loop, and those that may wait for it; others are cut. */
export const lingerReads = 16
export const maxLingering = 64
/** A shutdown waits this long for requests in flight before it cuts them, and takes this long at most. */
export const drainMs = 8000
export const stopMs = 10_000
/** A signal that comes so soon after the first is the same one: a process group, the launcher and npm all pass it on. */
export const echoMs = 500
/** An interrupted command, and its batch under way, may take this long to end. */
export const interruptMs = 700
export const settleMs = 600
/** A thread whose event loop has not turned for this long hangs: no request may wait so long for an answer. */
export const hungMs = 10_000
/** Interval of a thread's heartbeats. */
export const beatMs = 1000
/** Verdicts on tokens are kept this long, and this many of them, good ones and bad ones. */
export const verdictMs = 2000
export const maxVerdicts = 10_000
/** The same for the tokens of an issuer, when they are good: nobody can revoke them. */
export const issuedVerdictMs = 60_000
/** JWTs verified at once in each thread, and those that may wait for that, or for a key. */
export const verificationsAtOnce = 4
export const maxWaitingJwts = 1000
/** The longest JWT, the largest document of an issuer, and the most of its keys that are used. */
export const maxJwtLength = 8192
export const maxIssuerBytes = 256 * 1024
export const maxIssuerKeys = 64
/** The keys of an issuer may take this long to load; in this time there are two attempts at most. */
export const issuerLoadMs = 2000
export const keysCooldownMs = 10_000
/** Keys are loaded again after this long, and believed this long while the issuer is away. */
export const keysFreshMs = 300_000
export const keysStaleMs = 86_400_000
/** Answers, and requests in a row, may take this much of one turn of the event loop. */
export const turnMs = 10
/** With more work than this put off, a turn is stretched so far: what waits long outlives collections, and slows them. */
export const maxPutOff = 64
export const longTurnMs = 80
/** The answers of `/readyz`, for which probes commonly wait a second, and of `/metrics` wait so long for the store. */
export const readyMs = 600
export const gaugeMs = 500
/** Closing a store waits this long for a database that does not answer. */
export const storeCloseMs = 1500
/** The end waits this long for the collector of traces, beside the store: with what else it takes, at most a second. */
export const traceFlushMs = 900
/** The end waits this long for the reader of the log. */
export const logEndMs = 400

/** Shares of the file descriptors for connections, and for those that are being refused. */
export const connectionShare = 0.45
export const refusedShare = 0.1
export const maxRefused = 1000
/** With fewer descriptors left than this, the log says so. */
export const fewestDescriptors = 4

/** The largest body, and the largest request target. */
export const maxBodyBytes = 16 * 1024
export const maxUrlBytes = 8 * 1024
/** The target, names and values of a request's head must be smaller together. */
export const maxHeaderBytes = 16 * 1024
/** A page holds this many plants at most, and aims at this size. */
export const pagePlants = 4000
export const pageBytes = 256 * 1024
/** Plants of a segment: the number is in the data of every store, and so never changes. Its largest size. */
export const segmentPlants = 2000
export const segmentBytes = 224 * 1024
/** The bytes of all answers that are on their way to clients. */
export const inFlightBytes = 128 * 2 ** 20
/** The pages that are kept, and the lines of the log that its reader has not taken: further lines are dropped. */
export const maxCachedBytes = 32 * 2 ** 20
export const maxLogBytes = 8 * 2 ** 20
/** Each thread that serves requests has at least this many of the bytes of answers. */
export const threadBytes = 8 * 2 ** 20
/** One token may hold so many times what is left of them for all: for pages, and for longer lists. */
export const pageShare = 2
export const listShare = 1
/** Long lists that may read at one moment: pages have a connection left for them. */
export const streamReads = 2
/** Compression jobs in the pool per thread that serves requests: for a single one, half of Node's pool. */
export const codecJobs = 2
/** Approximate memory of a codec beside its output. */
export const codecBytes = 2 ** 20
/** While this many pages are being compressed, others are only when a client must wait for them. */
export const maxPreparedPages = 16
/** Pages of a token that may wait to be compressed, because their clients refuse the plain bytes. */
export const maxWaitingPages = 100
/** Long lists compressed at a time; further ones are sent plain where the client accepts that. */
export const maxCodedLists = 16
/** Requests of one connection that are worked on at a time; behind them nothing of it is parsed. */
export const requestsPerConnection = 4
/** Tokens looked up by one query, and those not known to be valid that may wait for it. */
export const tokensPerLookUp = 2048
export const unknownTokens = 4096
/** Tokens, and client addresses, whose rates are remembered: a power of two. */
export const ratedKeys = 2 ** 16
/** The longest `Authorization` that is kept with its connection: thousands of them would be megabytes. */
export const maxKeptLength = 1024
/** The window in which repeated lines of the log are counted, and the lines on connections that it may have. */
export const logWindowMs = 10_000
export const maxConnectionLines = 20
/** Plants that may wait for the next batch. */
export const maxWaitingPlants = 4096
/** The most plants in one transaction of a command, and how many are read at a time to be checked or exported. */
export const maxBatchPlants = 20_000
export const scannedPlants = 1000
/** The largest values of settings: threads, and seconds. */
export const maxThreads = 256
export const maxSeconds = 3600

const relations: [boolean, string][] = [
  [storeLimitMs < requestMs, 'the store gives up before the request does'],
  [requestMs + lateSweepMs + longTurnMs < promisedMs, 'a late request is found and answered in time'],
  [storeLimitMs + overdueSweepMs < requestMs, 'a writer thread that hangs is given up before the request is'],
  [attemptMs + shortestAttemptMs < storeLimitMs, 'there is time for a second attempt'],
  [lockMs < attemptMs, 'a wait for a lock ends before the attempt'],
  [idleInTransactionMs < storeLimitMs - lockMs, 'a session that hears nothing ends while others wait'],
  [vanishedMs < storeLimitMs, 'a session whose client is gone ends while others wait'],
  [handicapMs + shortestAttemptMs < attemptMs, 'an older server can be followed within one attempt'],
  [sqliteLockMs + sqliteMarginMs < storeLimitMs, 'a SQLite file can be opened anew within a request'],
  [headersMs < receiveMs, 'the head of a request comes before all of it'],
  [maxUrlBytes < maxHeaderBytes, 'a target that is too long can be told from a head that is too large'],
  [settleMs < interruptMs, 'an interrupted batch has its outcome before the command ends'],
  [maxJwtLength < maxHeaderBytes, 'a token that is too long is told so'],
  [receiveMs < stalledMs, 'a sender is told that it is late before it is cut'],
  [requestMs < drainMs, 'a shutdown waits for every answer'],
  [pagePlants % segmentPlants === 0 && segmentBytes < pageBytes, 'parts of a list can be segments'],
  [streamReads < readConnections, 'long lists leave a connection for pages'],
  [listShare < pageShare, 'long lists are refused before pages are'],
  [connectionShare < 0.5, 'clients have less than half of the descriptors'],
  [connectionShare + refusedShare < 0.6, 'the store, the log and the admin server have descriptors left'],
  [refusalMs < lingerMs, 'a client that is refused hears of it before it is cut'],
  [2 * requestMs < hungMs, 'a thread that hangs has failed requests before it is said to'],
  [traceFlushMs < storeCloseMs, 'a collector is waited for no longer than the store'],
  [drainMs + storeCloseMs + logEndMs < stopMs, 'a store that does not answer, and its log, are left in time'],
  [pageBytes * requestsPerConnection * 8 <= threadBytes, 'no connection holds much of the bytes in flight'],
  [threadBytes <= inFlightBytes, 'a thread has no more than all of them'],
  [verdictMs < promisedMs, 'a token that was revoked is refused in the promised time'],
  [issuerLoadMs < requestMs, 'an issuer that hangs is given up within the time of a request'],
  [issuerLoadMs < keysCooldownMs && keysCooldownMs < keysFreshMs, 'an attempt is over before the next'],
  [fileCheckMs < storeLimitMs, 'a file that is gone is noticed within the time of a request'],
  [gaugeMs <= readyMs && readyMs < 1000, 'probes and scrapes are answered while a store does not'],
  [2 * beatMs < hungMs, 'a thread that beats late is not taken for one that hangs'],
  [maxCodedLists * codecBytes < inFlightBytes, 'codecs leave room for what they are fed with'],
  [inFlightBytes + maxCachedBytes + maxLogBytes < 256 * 2 ** 20, 'what clients can fill is bounded'],
]
for (const [holds, relation] of relations) if (!holds) throw new Error(`limits: ${relation}`)
