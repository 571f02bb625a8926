// Logs why requests were answered 500 or 503: the error of an internal fault; for an unavailable store that has not
// logged it itself, a line now and then with the number of requests.
import type { Logger } from 'pino'
import { Outage } from '../logging/outage.ts'
import { StoreUnavailable } from '../store/store.ts'
import { IssuerUnavailable } from '../tokens/oidc/issuer.ts'
import type { Exchange } from './connection/exchange.ts'
import { ProblemError } from './problem-error.ts'

const storeWords = {
  gone: 'the store could not be used',
  still: 'the store still cannot be used',
  back: 'the store can be used again',
}
const overload = 'requests were refused: too many are in progress'

export class FailureLog {
  readonly #logger: Logger
  readonly #now: () => number
  readonly #store: Outage
  readonly #overload: Outage
  /** Kinds of requests (read, write) that failed and were not served since: a store may only be readable. */
  readonly #failing = new Set<string>()
  #backMs = Number.NEGATIVE_INFINITY

  /** `now`: the clock that requests are timed by, in milliseconds. */
  constructor(logger: Logger, now = () => performance.now()) {
    this.#logger = logger
    this.#now = now
    this.#store = new Outage(logger, storeWords, now)
    // Other requests are served meanwhile, so there is no clear end to report.
    this.#overload = new Outage(logger, { gone: overload, still: overload, back: '' }, now)
  }

  /** Notes a request that failed through no fault of its client. */
  failed(error: Error, exchange: Exchange, message = 'a request failed'): void {
    const { requestId, trace } = exchange
    const ids = { requestId, traceId: trace?.traceId }
    // Already logged where the issuer's keys are loaded.
    if (error instanceof IssuerUnavailable) return
    if (isOverload(error)) this.#noteOverload(error, ids)
    else if (error instanceof StoreUnavailable) this.#noteOutage(error, exchange, ids)
    else this.#logger.error({ err: error, ...ids }, message)
  }

  /** Notes an overload; while the store is unavailable it is part of that outage. */
  #noteOverload(error: Error, ids: object): void {
    if (this.#failing.size === 0) this.#overload.reportFailure(error, ids)
  }

  #noteOutage(error: StoreUnavailable, { method, startMs }: Exchange, ids: object): void {
    // It waited during an outage that is over, and timed out only now.
    if (startMs < this.#backMs) return
    this.#failing.add(kindOf(method))
    if (!error.isLogged) this.#store.reportFailure(error, { ...ids, outcome: error.outcome })
  }

  /** Notes the end of any request: one that was served shows that the store is back. */
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
