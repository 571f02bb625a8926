// Who may pass: the bearer tokens of RFC 6750, checked before anything of a body is read, and how often they may.
import bearerAuth from '@fastify/bearer-auth'
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { Config } from '../config/config.ts'
import type { Scope } from '../tokens/tokens.ts'
import type { Grant, Verify } from '../tokens/verifier.ts'
import { makeFailureLimit } from './auth-failures.ts'
import { exchangeOf } from './in-flight.ts'
import { ProblemError } from './problem-error.ts'
import { makeRateLimit } from './rate-limit.ts'

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

  function admit(grant: Grant, scope: Scope, request: FastifyRequest): boolean {
    if (!grant) return false
    const exchange = exchangeOf(request)
    exchange.owner = grant.id
    countRequest(exchange)
    return allows(grant, scope)
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
          ? grant.then((late) => admit(late, scope, request))
          : admit(grant, scope, request)
      },
    })
    return function authenticate(request, reply, done) {
      check.call(app, request, reply, (error?: Error) => {
        const refused = isFailure(error) ? countFailure(exchangeOf(request).remoteAddress) : undefined
        done(refused ?? error)
      })
    }
  }
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
