// Who may pass: the bearer tokens of RFC 6750, checked before anything of a body is read, and how often they may.
import bearerAuth from '@fastify/bearer-auth'
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { Config } from '../config/config.ts'
import type { Scope } from '../tokens/tokens.ts'
import type { Grant, Verify } from '../tokens/verifier.ts'
import { makeFailureLimit } from './auth-failures.ts'
import type { Exchange } from './exchange.ts'
import { exchangeOf } from './in-flight.ts'
import { ProblemError } from './problem-error.ts'
import { makeRateLimit } from './rate-limit.ts'

/** A longer `Authorization` is not kept with its connection: thousands of them would be megabytes. */
const maxKeptLength = 512

/** `shared`: where the threads of the process count together. */
type Limits = Pick<Config, 'rateLimit' | 'authFailureLimit'> & {
  shared: { rates: SharedArrayBuffer; failures: SharedArrayBuffer } | undefined
}

/** Makes the onRequest hooks that let a request pass when its token is valid, grants a scope, and has requests left. */
export async function requireBearer(
  app: FastifyInstance,
  verify: Verify,
  { rateLimit, authFailureLimit, shared }: Limits,
): Promise<(scope: Scope) => onRequestHookHandler> {
  await app.register(bearerAuth, { keys: [], addHook: false })
  const countRequest = makeRateLimit(rateLimit, shared?.rates)
  const countFailure = makeFailureLimit(authFailureLimit, shared?.failures)

  function admit(grant: Grant, scope: Scope, exchange: Exchange): boolean {
    if (!grant) return false
    exchange.owner = grant.id
    countRequest(exchange)
    return allows(grant, scope)
  }

  function admitAndKeep(grant: Grant, scope: Scope, request: FastifyRequest): boolean {
    const exchange = exchangeOf(request)
    if (grant) keep(grant, exchange)
    return admit(grant, scope, exchange)
  }

  return (scope) => {
    const factory = app.verifyBearerAuthFactory as NonNullable<typeof app.verifyBearerAuthFactory>
    const check = factory({
      keys: [],
      addHook: false,
      specCompliance: 'rfc6749',
      auth(token: string, request: FastifyRequest) {
        const grant = verify(token)
        return grant instanceof Promise
          ? grant.then((late) => admitAndKeep(late, scope, request))
          : admitAndKeep(grant, scope, request)
      },
    })
    return function authenticate(request, reply, done) {
      const exchange = exchangeOf(request)
      const known = knownGrant(exchange)
      if (known) {
        admit(known, scope, exchange)
        done()
        return
      }
      check.call(app, request, reply, (error?: Error) => {
        const refused = isFailure(error) ? countFailure(exchange.remoteAddress) : undefined
        done(refused ?? error)
      })
    }
  }
}

/**
 * What bearer-auth and the verifier said of the same header when it last came on this connection, for as long as that may
 * be believed: a hash, a look-up and a promise less.
 */
function knownGrant({ via, raw }: Exchange): Grant {
  const { kept } = via
  if (kept === undefined || !isSame(kept.authorization, raw.headers.authorization)) return undefined
  return kept.grant.untilMs > performance.now() ? kept.grant : undefined
}

/** Takes as long whatever it is that differs: behind a proxy the clients of one connection are not one. */
function isSame(kept: string, given = ''): boolean {
  if (given.length !== kept.length) return false
  let difference = 0
  for (let i = 0; i < kept.length; i++) difference |= kept.charCodeAt(i) ^ given.charCodeAt(i)
  return difference === 0
}

function keep(grant: NonNullable<Grant>, { via, raw }: Exchange): void {
  const authorization = raw.headers.authorization as string
  if (authorization.length <= maxKeptLength) via.kept = { authorization, grant }
}

/** Whether nobody is known to have asked. A token without the scope is somebody's, and a store that failed nobody's fault. */
function isFailure(error: (Error & { code?: string }) | undefined): boolean {
  return error?.code?.startsWith('FST_BEARER_AUTH_') === true
}

function allows(grant: NonNullable<Grant>, scope: Scope): boolean {
  if (grant.scopes.has(scope)) return true
  // RFC 6750, section 3.1.
  const challenge = `Bearer realm="plant-store", error="insufficient_scope", scope="${scope}"`
  throw new ProblemError('forbidden', `The token lacks the scope ${scope}.`, {
    headers: { 'www-authenticate': challenge },
  })
}
