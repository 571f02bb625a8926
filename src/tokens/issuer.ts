// The accepted issuer of tokens, and the metadata for discovering it (RFC 9728).
import type { FastifyPluginAsync } from 'fastify'
import type { Settings } from '../settings.ts'
import { scopes } from './tokens.ts'

/** The settings, with an issuer. */
export type Issuer = Settings & { oidcIssuer: string }

/** Returns the settings of the issuer; undefined if none is set. */
export function issuerOf(settings: Settings): Issuer | undefined {
  return settings.oidcIssuer === undefined ? undefined : (settings as Issuer)
}

/** Returns the URL of an issuer's metadata (OpenID Connect Discovery 1.0, section 4). */
export function discoveryUrl({ oidcIssuer }: Issuer): string {
  return `${oidcIssuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

const wellKnown = '/.well-known/oauth-protected-resource'

/** Returns the metadata of the protected resource, with path and URL; undefined if no audience is an https URL. */
export function describeResource({ oidcIssuer, oidcAudience, oidcScopePrefix }: Issuer) {
  const resource = oidcAudience.find((audience) => URL.parse(audience)?.protocol === 'https:')
  if (resource === undefined) return undefined
  const { origin, pathname, search } = new URL(resource)
  const path = `${wellKnown}${pathname === '/' ? '' : pathname}`
  const metadata = {
    resource,
    authorization_servers: [oidcIssuer],
    scopes_supported: scopes.map((scope) => oidcScopePrefix + scope),
    bearer_methods_supported: ['header'],
  }
  return { path, url: origin + path + search, metadata }
}

/** Describes sign-in on the docs page (authorization code with PKCE, RFC 7636); undefined if no client is set. */
export function describeSignIn({ oidcDocsClientId, oidcAudience, oidcScopePrefix }: Issuer) {
  if (oidcDocsClientId === undefined) return undefined
  const resource = oidcAudience[0] as string
  return {
    clientId: oidcDocsClientId,
    scopes: scopes.map((scope) => oidcScopePrefix + scope),
    usePkceWithAuthorizationCodeGrant: true,
    // `resource`: RFC 8707; some issuers use `audience` instead.
    additionalQueryStringParams: { resource, audience: resource },
  }
}

type Resource = NonNullable<ReturnType<typeof describeResource>>

/** Serves the metadata, without a token and outside the base path. */
export const serveResource: FastifyPluginAsync<Resource> = async (app, { path, url, metadata }) => {
  // The handler compares the path, which may contain characters that are special to the router.
  app.get(`${wellKnown}*`, (request, reply) => {
    if (URL.parse(request.url, url)?.pathname !== path) return reply.callNotFound()
    return reply.header('cache-control', 'no-cache').send(metadata)
  })
}
