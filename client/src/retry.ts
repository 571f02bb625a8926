// Repeats a request that is safe to repeat, until it is answered, refused, given up or aborted.
import { type Answer, readRetryAfter } from './answer.ts'
import { longestMs, makeClock } from './clock.ts'
import { PlantStoreError, type PlantStoreFailure, PlantStoreUnreachable, type Problem } from './errors.ts'

/** How requests are repeated. Every setting is optional. */
export type RetryOptions = {
  /** How often a request is sent at most; 1 turns retries off. 5 by default. */
  attempts?: number | undefined
  /** How long a call may take until it is answered, with all attempts and pauses. 30,000 ms by default. */
  totalMs?: number | undefined
  /** How long an attempt may be silent, before its answer or in the middle of a list. 10,000 ms by default. */
  silenceMs?: number | undefined
  /** The longest pause before the second attempt; it doubles with each further attempt. 200 ms by default. */
  baseMs?: number | undefined
  /** The longest pause of all, unless `Retry-After` asks for more. 5,000 ms by default. */
  maxMs?: number | undefined
  /** Is told of each attempt that failed and is followed by another: why, its number, and how long the pause is. */
  onRetry?: ((failure: PlantStoreFailure, attempt: number, pauseMs: number) => void) | undefined
}

/** Sends a request once. `heard` is called for each part of a list: it takes as long as it needs, unless it is silent. */
export type Send<T> = (signal: AbortSignal, heard: () => void) => Promise<Answer<T>>
type Success<T> = { headers: Headers; data?: T }

/**
 * Statuses after which a request is sent again: too many requests, and failures of the service or of a proxy in front
 * of it.
 */
const passing = [429, 500, 502, 503, 504]
/** Problems of the server that leave no doubt: nothing was added. */
const certain = ['nothing-added', 'unread', 'overloaded']

/** Sends until there is an answer. Throws a PlantStoreFailure, or the reason of `signal` once it is aborted. */
export async function retry<T>(
  send: Send<T>,
  url: string,
  { totalMs = 30_000, silenceMs = 10_000, ...options }: RetryOptions = {},
  signal?: AbortSignal,
): Promise<Success<T>> {
  signal?.throwIfAborted()
  const endMs = performance.now() + Math.min(totalMs, longestMs)
  const total = makeClock(signal)
  const attempt = () => {
    total.start(endMs - performance.now())
    const own = makeClock(total.signal)
    own.start(silenceMs)
    const hear = () => {
      total.stop()
      own.start(silenceMs)
    }
    return send(own.signal, hear).finally(own.end)
  }
  return repeat(attempt, { ...options, url, endMs, limit: total.signal })
    .catch((error) => {
      // Whatever an abort by the caller leads to, the caller is told its own reason.
      signal?.throwIfAborted()
      throw error
    })
    .finally(total.end)
}

type Limits = Omit<RetryOptions, 'totalMs' | 'silenceMs'> & {
  url: string
  endMs: number
  limit: AbortSignal
}

async function repeat<T>(
  attempt: () => Promise<Answer<T>>,
  { attempts = 5, baseMs = 200, maxMs = 5000, onRetry, url, endMs, limit }: Limits,
): Promise<Success<T>> {
  let mayBeAdded = false
  for (let sent = 1; ; sent++) {
    const answer = await attempt().catch((cause) => new PlantStoreUnreachable(cause, { url, attempts: sent }))
    const isUnreachable = answer instanceof PlantStoreUnreachable
    if (!isUnreachable && !answer.problem) return answer
    const failure = isUnreachable ? answer : new PlantStoreError(answer.problem as Problem)
    failure.headers = answer.headers
    mayBeAdded = (mayBeAdded || leavesDoubt(failure)) && !isElsewhere(failure)
    failure.mayBeAdded = mayBeAdded
    const waitMs = answer.headers ? readRetryAfter(answer.headers) : 0
    // Full jitter: clients that failed together do not come back together.
    const pauseMs = waitMs + Math.random() * Math.min(maxMs, baseMs * 2 ** (sent - 1))
    const isLast = sent >= attempts || limit.aborted || performance.now() + pauseMs > endMs
    if (isLast || !isPassing(failure)) throw failure
    onRetry?.(failure, sent, pauseMs)
    await pause(pauseMs, limit)
    if (limit.aborted) throw failure
  }
}

function isPassing(failure: PlantStoreFailure): boolean {
  return !(failure instanceof PlantStoreError) || passing.includes(failure.problem.status)
}

function leavesDoubt(failure: PlantStoreFailure): boolean {
  if (!(failure instanceof PlantStoreError)) return true
  return failure.problem.status >= 500 && !certain.includes(failure.kind)
}

/** The id names another plant, so no attempt has added this one. */
function isElsewhere(failure: PlantStoreFailure): boolean {
  return failure instanceof PlantStoreError && failure.kind === 'id-conflict'
}

/** Resolves after so many milliseconds, or when the limit is reached. */
function pause(ms: number, limit: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      resolve()
    }
    const timer = setTimeout(end, ms)
    limit.addEventListener('abort', end)
  })
}
