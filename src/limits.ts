// Every limit and time-out that must stand in a relation to another, and the relations. Times are milliseconds.

/** A request that is there in full is answered within this time, whatever its stages wait for. */
export const promisedMs = 5000
/** Its time is up before: the look for those whose time is up, like the answer itself, takes some of it. */
export const requestMs = 4800
/** What the store may take of that: its own word comes first, and says more than that the time is up. */
export const storeLimitMs = 4500
/** How long one server of a cluster may keep one attempt waiting. */
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
/** A read that has waited this long for a connection is given up, so that a queue does not outlive its clients. */
export const readQueueMs = 1000
/** How many connections read pages, how many reads may wait for one, and how many look-ups may be under way. */
export const readConnections = 3
export const maxWaitingReads = 200
export const maxLookups = 1000

/** How long a SQLite file that is opened, or looked at whether it can be written, may be locked by others. */
export const sqliteLockMs = 2000
/** A batch waits for that lock until so long before its deadline: the database's own word comes first. */
export const sqliteMarginMs = 100
/** How long files that are to be exchanged wait for the other threads to let go of them. */
export const releaseMs = 1000
/** A read of SQLite holds up the event loop while it waits, which it does only beside a recovery. */
export const sqliteReadLockMs = 200

/** The head of a request, and all of it, must be there after this long. */
export const headersMs = 10_000
export const receiveMs = 20_000
/** A connection that moves no byte for this long while a request is at work is cut. */
export const stalledMs = 30_000
/** How long a connection that is refused is waited for with its request; then it is told so without one. */
export const refusalMs = 200
/** How long what is still being sent is read and dropped after the last answer of a connection. */
export const lingerMs = 2000
/** How long a shutdown waits for requests in flight before it cuts them, and how long it takes at most. */
export const drainMs = 8000
export const stopMs = 10_000
/** How long the end of a store waits for a database that does not answer. */
export const storeCloseMs = 1500
/** How long the end waits for whoever reads the log. */
export const logEndMs = 400

/** What part of the file descriptors the connections may have, and those that are being refused. */
export const connectionShare = 0.45
export const refusedShare = 0.1
export const maxRefused = 1000
/** With fewer left than this, it is time to say so. */
export const fewestDescriptors = 4

/** The largest body, and the largest request target. */
export const maxBodyBytes = 16 * 1024
export const maxUrlBytes = 8 * 1024
/** The target, names and values of a request's head must be smaller together. */
export const maxHeaderBytes = 16 * 1024
/** How many plants a page holds at most, and how large it is meant to be. */
export const pagePlants = 4000
export const pageBytes = 256 * 1024
/** How many plants a segment has: it is in the data of every store, and so never changes. How large one is at most. */
export const segmentPlants = 2000
export const segmentBytes = 224 * 1024
/** The bytes of all answers that are on their way to clients. */
export const inFlightBytes = 128 * 2 ** 20
/** How many of them each thread that serves requests has at the least. */
export const threadBytes = 8 * 2 ** 20
/** How much of that one token may hold for each byte that is left for all: for pages, and for longer lists. */
export const pageShare = 2
export const listShare = 1
/** How many long lists may read at one moment: pages have a connection left for them. */
export const streamReads = 2
/** How many jobs that compress lists each thread that serves requests has in the pool: alone, half of what Node makes it. */
export const codecJobs = 2
/** How many pages of a token may wait for that, because their clients refuse the plain bytes. */
export const maxWaitingPages = 100
/** How many long lists are compressed at a time; further ones are sent plain to those who accept that. */
export const maxCodedLists = 16
/** How many requests of one connection are worked on at a time. */
export const requestsPerConnection = 4
/** With more requests than this at hand, a connection that has others waiting behind those is cut. */
export const maxOpenRequests = 20_000
/** How many plants may wait for the next batch. */
export const maxWaitingPlants = 4096

const relations: [boolean, string][] = [
  [storeLimitMs < requestMs, 'the store gives up before the request does'],
  [requestMs < promisedMs, 'a late request is found in time'],
  [attemptMs + shortestAttemptMs < storeLimitMs, 'there is time for a second attempt'],
  [lockMs < attemptMs, 'a wait for a lock ends before the attempt'],
  [
    idleInTransactionMs < storeLimitMs - lockMs,
    'a vanished session is ended while others can still wait for it',
  ],
  [vanishedMs < storeLimitMs, 'a session whose client is gone is ended while others can still wait for it'],
  [handicapMs + shortestAttemptMs < attemptMs, 'an older server can be followed within one attempt'],
  [readQueueMs + attemptMs < storeLimitMs, 'a read that waited for its turn has time for an attempt'],
  [sqliteLockMs + sqliteMarginMs < storeLimitMs, 'a SQLite file can be opened anew within a request'],
  [headersMs < receiveMs, 'the head of a request comes before all of it'],
  [maxUrlBytes < maxHeaderBytes, 'a target that is too long can be told from a head that is too large'],
  [receiveMs < stalledMs, 'a sender is told that it is late before it is cut'],
  [requestMs < drainMs, 'a shutdown waits for every answer'],
  [pagePlants % segmentPlants === 0 && segmentBytes < pageBytes, 'parts of a list can be segments'],
  [streamReads < readConnections, 'long lists leave a connection for pages'],
  [listShare < pageShare, 'long lists are refused before pages are'],
  [connectionShare < 0.5, 'clients have less than half of the descriptors'],
  [connectionShare + refusedShare < 0.6, 'the store, the log and the admin server have descriptors left'],
  [refusalMs < lingerMs, 'a client that is refused hears of it before it is cut'],
  [drainMs < stopMs, 'a shutdown has time to close the store'],
  [
    drainMs + storeCloseMs + logEndMs < stopMs,
    'a store that does not answer, and a log that nobody reads, are left in time',
  ],
  [
    pageBytes * requestsPerConnection * 8 <= threadBytes && threadBytes <= inFlightBytes,
    'no connection holds a large part of the bytes in flight',
  ],
]
/* c8 ignore next: no test can break a relation between constants */
for (const [holds, relation] of relations) if (!holds) throw new Error(`limits: ${relation}`)
