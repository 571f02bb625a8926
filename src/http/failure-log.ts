// Why requests were answered 500 or 503. What fails in itself has its error in the log; a store that is away has a line
// now and then, with the number of requests that it concerned.
import type { Logger } from 'pino'
import { Outage } from '../log/outage.ts'
import { StoreUnavailable } from '../store/store.ts'
import type { Exchange } from './exchange.ts'
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
    const { requestId } = exchange
    if (isOverload(error)) this.#noteOverload(error, requestId)
    else if (error instanceof StoreUnavailable) this.#noteOutage(error, exchange)
    else this.#logger.error({ err: error, requestId }, message)
  }

  /** What piles up while the store is away is the same outage. */
  #noteOverload(error: Error, requestId: string): void {
    if (this.#failing.size === 0) this.#overload.fails(error, { requestId })
  }

  #noteOutage(error: StoreUnavailable, { requestId, method, startMs }: Exchange): void {
    // It waited while the store was away, and only now its time is up.
    if (startMs < this.#backMs) return
    this.#failing.add(kindOf(method))
    this.#store.fails(error, { requestId, outcome: error.outcome })
  }

  /** Is told of every request that has ended: what was served shows that the store is back. */
  ended({ method, status, token, problem }: Exchange): void {
    if (this.#failing.size === 0) return
    if (token === undefined || problem !== undefined || status >= 400) return
    this.#failing.delete(kindOf(method))
    if (this.#failing.size > 0) return
    this.#backMs = this.#now()
    this.#store.holds()
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
