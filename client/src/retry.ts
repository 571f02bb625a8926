// Retries a request that is safe to repeat, until it succeeds, is refused or aborted, or runs out of attempts or time.
import { type Answer, readRetryAfter } from './answer.ts'
import { longestMs, makeClock } from './clock.ts'
import { PlantStoreError, type PlantStoreFailure, PlantStoreUnreachable, type Problem } from './errors.ts'

/** How requests are retried. Every option has a default. */
export type RetryOptions = {
  /** The maximum number of attempts; 1 turns retries off. 5 by default. */
  attempts?: number | undefined
  /** The time limit of a call until its response begins, with all attempts and pauses. 30,000 ms by default. */
  totalMs?: number | undefined
  /** The longest silence of an attempt, before its response or in the middle of a list. 10,000 ms by default. */
  silenceMs?: number | undefined
  /** The longest pause before the second attempt; it doubles with each further attempt. 200 ms by default. */
  baseMs?: number | undefined
  /** The longest pause, unless `Retry-After` requires more. 5,000 ms by default. */
  maxMs?: number | undefined
  /** Called before each retry with the error and number of the failed attempt, and the pause before the next one. */
  onRetry?: ((failure: PlantStoreFailure, attempt: number, pauseMs: number) => void) | undefined
}

/** Sends a request once. `onData` is called for each chunk of a list: only a long silence times out. */
export type Send<T> = (signal: AbortSignal, onData: () => void) => Promise<Answer<T>>
type Success<T> = { headers: Headers; data?: T }

/**
 * Statuses after which a request is retried: it took too long to arrive, there were too many requests, or the service
 * or a proxy in front of it failed.
 */
const retryable = [408, 429, 500, 502, 503, 504]
/** The 5xx problems after which certainly nothing was added. */
const notAdded = ['nothing-added', 'unread', 'overloaded']

/** Sends until there is a final response. Throws a PlantStoreFailure, or the reason of `signal` once it is aborted. */
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
    const onData = () => {
      total.stop()
      own.start(silenceMs)
    }
    return send(own.signal, onData).finally(own.end)
  }
  return repeat(attempt, { ...options, url, endMs, limit: total.signal })
    .catch((error) => {
      // After an abort by the caller, reject with the caller's reason, whatever error the abort caused.
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
    mayBeAdded = (mayBeAdded || isOutcomeUnknown(failure)) && !isIdTaken(failure)
    failure.mayBeAdded = mayBeAdded
    const waitMs = answer.headers ? readRetryAfter(answer.headers) : 0
    // Full jitter, so that clients that failed together do not retry together.
    const pauseMs = waitMs + Math.random() * Math.min(maxMs, baseMs * 2 ** (sent - 1))
    const isLast = sent >= attempts || limit.aborted || performance.now() + pauseMs > endMs
    if (isLast || !isRetryable(failure)) throw failure
    onRetry?.(failure, sent, pauseMs)
    await pause(pauseMs, limit)
    if (limit.aborted) throw failure
  }
}

function isRetryable(failure: PlantStoreFailure): boolean {
  return !(failure instanceof PlantStoreError) || retryable.includes(failure.problem.status)
}

function isOutcomeUnknown(failure: PlantStoreFailure): boolean {
  if (!(failure instanceof PlantStoreError)) return true
  return failure.problem.status >= 500 && !notAdded.includes(failure.kind)
}

/** The id belongs to another plant, so no attempt has added this one. */
function isIdTaken(failure: PlantStoreFailure): boolean {
  return failure instanceof PlantStoreError && failure.kind === 'id-conflict'
}

/** Resolves after `ms`, or when `limit` is aborted. */
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
