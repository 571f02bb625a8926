// Who may pass: the bearer tokens of RFC 6750, checked before anything of a body is read.
import bearerAuth from '@fastify/bearer-auth'
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { Scope } from '../tokens/tokens.ts'
import type { Grant, Verify } from '../tokens/verifier.ts'
import { exchangeOf } from './in-flight.ts'
import { ProblemError } from './problem-error.ts'

/** Makes the onRequest hooks that let a request pass when its token is valid and grants a scope. */
export async function requireBearer(
  app: FastifyInstance,
  verify: Verify,
): Promise<(scope: Scope) => onRequestHookHandler> {
  await app.register(bearerAuth, { keys: [], addHook: false })
  return (scope) => {
    const factory = app.verifyBearerAuthFactory as NonNullable<typeof app.verifyBearerAuthFactory>
    return factory({
      keys: [],
      addHook: false,
      specCompliance: 'rfc6749',
      auth(token: string, request: FastifyRequest) {
        const grant = verify(token)
        return grant instanceof Promise
          ? grant.then((late) => allows(late, scope, request))
          : allows(grant, scope, request)
      },
    })
  }
}

function allows(grant: Grant, scope: Scope, request: FastifyRequest): boolean {
  if (!grant) return false
  exchangeOf(request).owner = grant.id
  if (grant.scopes.has(scope)) return true
  // RFC 6750, section 3.1.
  const challenge = `Bearer realm="plant-store", error="insufficient_scope", scope="${scope}"`
  throw new ProblemError('forbidden', `The token lacks the scope ${scope}.`, {
    headers: { 'www-authenticate': challenge },
  })
}
