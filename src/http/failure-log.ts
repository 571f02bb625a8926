// Logs why requests were answered 500 or 503: the error of an internal fault; for an unavailable store that has not
// logged it itself, a line now and then with the number of requests.
import type { Logger } from 'pino'
import { Outage } from '../logging/outage.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { IssuerUnavailable } from '../tokens/oidc/issuer.ts'
import type { Exchange } from './connection/exchange.ts'
import { ProblemError } from './problem-error.ts'

const storeWords = {
  gone: 'the store could not be used',
  still: 'the store still cannot be used',
  back: 'the store can be used again',
}
const overload = 'requests were refused: too many are in progress'

export type FailureLog = ReturnType<typeof makeFailureLog>

/** `findFault`: what the database's servers said last, while none can be used. */
export function makeFailureLog(logger: Logger, findFault: () => string | undefined = () => undefined) {
  const store = new Outage(logger, storeWords)
  // Other requests are served meanwhile, so there is no clear end to report.
  const overloads = new Outage(logger, { gone: overload, still: overload, back: '' })
  /** Kinds of requests (read, write) that failed and were not served since: a store may only be readable. */
  const failing = new Set<string>()
  let backMs = 0

  function noteOutage(error: StoreUnavailable, exchange: Exchange, ids: object): void {
    // It waited during an outage that is over, and timed out only now.
    if (exchange.startMs < backMs) return
    failing.add(kindOf(exchange))
    const database = error.cause === undefined ? findFault() : undefined
    if (!error.isLogged) store.reportFailure(error, { ...ids, outcome: error.outcome, database })
  }

  return {
    /** Notes a request that failed through no fault of its client. */
    failed(error: Error, exchange: Exchange, message = 'a request failed'): void {
      // Already logged where the issuer's keys are loaded.
      if (error instanceof IssuerUnavailable) return
      const { requestId, trace } = exchange
      const ids = { requestId, traceId: trace?.traceId, spanId: trace?.spanId }
      if (isOverload(error)) {
        // While the store is unavailable, an overload is part of that outage.
        if (failing.size === 0) overloads.reportFailure(error, ids)
      } else if (error instanceof StoreUnavailable) noteOutage(error, exchange, ids)
      else logger.error({ err: error, ...ids }, message)
    },

    /** Notes the end of any request: one that was served shows that the store is back. */
    ended(exchange: Exchange): void {
      const { status, owner, problem } = exchange
      if (failing.size === 0 || owner === '' || problem !== undefined || status >= 400) return
      failing.delete(kindOf(exchange))
      if (failing.size > 0) return
      backMs = performance.now()
      store.reportRecovery()
    },
  }
}

function kindOf({ timeoutOutcome }: Exchange): 'read' | 'write' {
  return timeoutOutcome === 'unread' ? 'read' : 'write'
}

function isOverload(error: Error): boolean {
  return error instanceof StoreUnavailable
    ? error.outcome === 'overloaded'
    : error instanceof ProblemError && error.code === 'overloaded'
}
