// Why requests were answered 500 or 503. A fault of a request has its error in the log; a store that is away, and has not
// said so itself, has a line now and then, with the number of requests that it concerned.
import type { Logger } from 'pino'
import { Outage } from '../logging/outage.ts'
import { StoreUnavailable } from '../store/store.ts'
import { IssuerUnavailable } from '../tokens/oidc/issuer-unavailable.ts'
import type { Exchange } from './connection/exchange.ts'
import { ProblemError } from './problem-error.ts'

const storeWords = {
  gone: 'the store could not be used',
  still: 'the store still cannot be used',
  back: 'the store can be used again',
}
const overload = 'requests were refused: too many are at work'

export class FailureLog {
  readonly #logger: Logger
  readonly #now: () => number
  readonly #store: Outage
  readonly #overload: Outage
  /** The methods that the store has failed and not served since: it may still be read when it cannot be written. */
  readonly #failing = new Set<string>()
  #backMs = Number.NEGATIVE_INFINITY

  /** `now`: milliseconds of the clock that requests are timed by. */
  constructor(logger: Logger, now = () => performance.now()) {
    this.#logger = logger
    this.#now = now
    this.#store = new Outage(logger, storeWords, now)
    // Others are served meanwhile: when it is over cannot be told.
    this.#overload = new Outage(logger, { gone: overload, still: overload, back: '' }, now)
  }

  /** A request failed, and not by its client's fault. */
  failed(error: Error, exchange: Exchange, message = 'a request failed'): void {
    const { requestId, trace } = exchange
    const ids = { requestId, traceId: trace?.traceId }
    // The log is told of the issuer where its keys are loaded.
    if (error instanceof IssuerUnavailable) return
    if (isOverload(error)) this.#noteOverload(error, ids)
    else if (error instanceof StoreUnavailable) this.#noteOutage(error, exchange, ids)
    else this.#logger.error({ err: error, ...ids }, message)
  }

  /** An overload while the store is away is part of the same outage. */
  #noteOverload(error: Error, ids: object): void {
    if (this.#failing.size === 0) this.#overload.reportFailure(error, ids)
  }

  #noteOutage(error: StoreUnavailable, { method, startMs }: Exchange, ids: object): void {
    // The request waited while the store was away, and only now its time is up.
    if (startMs < this.#backMs) return
    this.#failing.add(kindOf(method))
    if (!error.isLogged) this.#store.reportFailure(error, { ...ids, outcome: error.outcome })
  }

  /** To be called for every request that has ended: one that was served shows that the store is back. */
  ended({ method, status, token, problem }: Exchange): void {
    if (this.#failing.size === 0) return
    if (token === undefined || problem !== undefined || status >= 400) return
    this.#failing.delete(kindOf(method))
    if (this.#failing.size > 0) return
    this.#backMs = this.#now()
    this.#store.reportRecovery()
  }
}

function kindOf(method: string): 'read' | 'write' {
  return method === 'POST' ? 'write' : 'read'
}

function isOverload(error: Error): boolean {
  return error instanceof StoreUnavailable
    ? error.outcome === 'overloaded'
    : error instanceof ProblemError && error.code === 'overloaded'
}
