// Bearer tokens (RFC 6750), checked and counted before anything of a body is read.
import bearerAuth from '@fastify/bearer-auth'
import type {
  FastifyInstance,
  FastifyRequest,
  onRequestHookHandler,
  preValidationHookHandler,
  RouteOptions,
} from 'fastify'
import { problems } from '../../../schemas/problems.ts'
import type { Config } from '../../config/load-config.ts'
import { maxKeptLength } from '../../limits.ts'
import type { TimeSlices } from '../../runtime/time-slices.ts'
import { StoreUnavailable } from '../../store/errors.ts'
import type { Scope } from '../../tokens/tokens.ts'
import type { Grant, Verify } from '../../tokens/verifier.ts'
import { connectionOf } from '../connection/connection.ts'
import type { Exchange } from '../connection/exchange.ts'
import { exchangeOf } from '../connection/in-flight.ts'
import { methodsOf, type Operation } from '../operation.ts'
import { ProblemError } from '../problem-error.ts'
import type { Challenge } from './challenge.ts'
import { makeFailureLimit, makeRateLimit } from './rate-limits.ts'

/** `shared`: memory in which all threads count together; `slices`: schedule the answers to refused requests. */
type Limits = Pick<Config, 'rateLimit' | 'authFailureLimit'> & {
  shared: { rates: SharedArrayBuffer; failures: SharedArrayBuffer } | undefined
  slices: TimeSlices
  challenge: Challenge
}

/** The beginning of an operation's route. `preValidation`: checks the token again when a body may have arrived late. */
export type GuardedRoute = Pick<RouteOptions, 'method' | 'url' | 'schema' | 'onRequest' | 'preValidation'>

/**
 * Makes the routes of operations, with the hooks that let a request pass when its token is valid, grants the scope, and
 * has requests left.
 */
export async function requireBearer(
  app: FastifyInstance,
  verify: Verify,
  limits: Limits,
): Promise<(operation: Operation) => GuardedRoute> {
  await app.register(bearerAuth, { keys: [], addHook: false })
  const { admit, refuse } = makeAdmission(limits)
  return (operation) => {
    const { scope, late, url, schema } = operation
    const factory = app.verifyBearerAuthFactory as NonNullable<typeof app.verifyBearerAuthFactory>
    const check = factory({
      keys: [],
      addHook: false,
      specCompliance: 'rfc6749',
      async auth(token: string, request: FastifyRequest) {
        const exchange = exchangeOf(request)
        const grant = await verify(token)
        if (grant) keep(grant, exchange)
        return admit(grant, scope, exchange)
      },
    })
    const authenticate: onRequestHookHandler = (request, reply, done) => {
      const exchange = exchangeOf(request)
      exchange.timeoutOutcome = late
      const known = knownGrant(exchange)
      if (known) {
        admit(known, scope, exchange)
        done()
        return
      }
      check.call(app, request, reply, (error?: Error) => {
        if (error === undefined) done()
        else limits.slices.run(() => done(refuse(error, exchange)), 'refused')
      })
    }
    /** Checks the token again: it may have been revoked or have expired while the body arrived. */
    const preValidation: preValidationHookHandler = (request, reply, done) => {
      if (exchangeOf(request).grantedUntilMs > performance.now()) done()
      else authenticate.call(app, request, reply, done)
    }
    const hooks = { onRequest: authenticate, ...(schema.body && { preValidation }) }
    return { method: methodsOf(operation), url, schema, ...hooks }
  }
}

/** Counts requests and failures, and says who may pass. */
function makeAdmission({ rateLimit, authFailureLimit, shared, challenge }: Limits) {
  const countRequest = rateLimit && makeRateLimit(rateLimit, shared?.rates)
  const countFailure = authFailureLimit && makeFailureLimit(authFailureLimit, shared?.failures)

  function admit(grant: Grant, scope: Scope, exchange: Exchange): boolean {
    if (!grant) return false
    exchange.grantedUntilMs = grant.untilMs
    if (exchange.owner === '') {
      exchange.owner = grant.id
      countRequest?.(exchange)
    }
    if (grant.scopes.has(scope)) return true
    throw new ProblemError(problems.noScope(scope), { headers: { 'www-authenticate': challenge(scope) } })
  }

  /** Counts a failure. One too many, like an overload, ends the connection: a client that floods has to reconnect. */
  function refuse(error: Error, exchange: Exchange): Error {
    const refused = isFailure(error) ? countFailure?.(exchange.remoteAddress) : undefined
    if (refused || (error instanceof StoreUnavailable && error.outcome === 'overloaded'))
      connectionOf(exchange.raw.socket).endAfter(exchange)
    return refused ?? error
  }

  return { admit, refuse }
}

/**
 * The grant of the last request on this connection if the header is the same and the grant still fresh: saves a hash, a
 * look-up and a promise.
 */
function knownGrant({ raw }: Exchange): Grant {
  const { kept } = connectionOf(raw.socket)
  if (kept === undefined || !isSame(kept.authorization, raw.headers.authorization)) return undefined
  return kept.grant.untilMs > performance.now() ? kept.grant : undefined
}

/** Compares in constant time: behind a proxy one connection carries the tokens of many clients. */
function isSame(kept: string, given = ''): boolean {
  if (given.length !== kept.length) return false
  let difference = 0
  for (let i = 0; i < kept.length; i++) difference |= kept.charCodeAt(i) ^ given.charCodeAt(i)
  return difference === 0
}

function keep(grant: NonNullable<Grant>, { raw }: Exchange): void {
  const authorization = raw.headers.authorization as string
  if (authorization.length <= maxKeptLength) connectionOf(raw.socket).kept = { authorization, grant }
}

/**
 * True when no valid token was presented. A missing scope, a failed store, and a key of the issuer that cannot be looked
 * up are no failed authentication.
 */
function isFailure({ code }: Error & { code?: string }): boolean {
  return code?.startsWith('FST_BEARER_AUTH_') === true
}
