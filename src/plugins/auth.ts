// Bearer tokens (RFC 6750) and their scopes. A token is verified before the body is read, and again afterwards if the
// verdict has expired.
import bearerAuth from '@fastify/bearer-auth'
import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { problems } from '../../schemas/problems.ts'
import { ProblemError } from '../problem-error.ts'
import type { Scope } from '../tokens/tokens.ts'
import type { Grant, Verify } from '../tokens/verifier.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The required scope of a token. A guarded route without a scope refuses every token. */
    scope?: Scope
  }
  interface FastifyRequest {
    /** What the token allows. Undefined until the token has been verified. */
    grant: Grant
  }
}

/** For challenges: the URL of the resource metadata (RFC 9728), and the prefix of the issuer's scopes. */
type AuthOptions = { verify: Verify; resource: string | undefined; scopePrefix: string | undefined }

/** Guards every route registered after it in the same context. `config.scope` of a route names the scope it requires. */
export const auth = fp<AuthOptions>(async (app, { verify, resource, scopePrefix = '' }) => {
  const metadata = resource === undefined ? '' : `, resource_metadata="${resource}"`
  const challengeWith = (error: string) => ({
    headers: { 'www-authenticate': `Bearer realm="plant-store"${error}${metadata}` },
  })

  // Created once, so that a refusal is cheap. Without credentials, no error code is sent (RFC 6750, section 3.1).
  const noToken = new ProblemError(problems.noToken, challengeWith(''))
  const badToken = new ProblemError(problems.badToken, challengeWith(', error="invalid_token"'))

  /** Translates an error of @fastify/bearer-auth. */
  function toRefusal(error: Error & { code?: string }, { headers }: FastifyRequest): Error {
    if (error.code?.startsWith('FST_BEARER_AUTH_') !== true) return error
    return /^bearer( |$)/i.test(headers.authorization ?? '') ? badToken : noToken
  }

  await app.register(bearerAuth, {
    keys: [],
    addHook: false,
    specCompliance: 'rfc6749',
    verifyErrorLogLevel: 'trace',
    async auth(token, request) {
      const grant = await verify(token)
      if (grant) request.grant = grant
      return grant !== undefined
    },
  })
  const check = app.verifyBearerAuth as NonNullable<typeof app.verifyBearerAuth>
  const authenticate: typeof check = (request, reply, done) =>
    check(request, reply, (error) => done(error && toRefusal(error, request)))

  app.decorateRequest('grant')
  app.addHook('onRequest', authenticate)
  app.addHook('onRoute', (route) => {
    const { scope } = route.config ?? {}
    const error = `, error="insufficient_scope", scope="${scopePrefix}${scope}"`
    const checkScope: onRequestHookHandler = ({ grant }, _reply, done) => {
      if (scope !== undefined && grant.scopes.has(scope)) done()
      else done(new ProblemError(problems.noScope(String(scope)), challengeWith(error)))
    }
    // Hooks of routes run last, so a 403 counts toward the rate limit.
    route.onRequest = [route.onRequest ?? [], checkScope].flat()
  })
  // The token may have been revoked or have expired while the body was received.
  app.addHook('preValidation', (request, reply, done) => {
    if (request.grant.untilMs > performance.now()) done()
    else authenticate(request, reply, done)
  })
})
