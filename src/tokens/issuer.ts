// The issuer whose tokens are accepted, and the metadata by which clients find it (RFC 9728).
import type { FastifyPluginAsync } from 'fastify'
import type { Settings } from '../settings.ts'
import { scopes } from './tokens.ts'

/** The settings of a service with an issuer. */
export type Issuer = Settings & { oidcIssuer: string }

/** Returns the issuer of the settings; undefined if none is set. */
export function issuerOf(settings: Settings): Issuer | undefined {
  return settings.oidcIssuer === undefined ? undefined : (settings as Issuer)
}

/** URL of an issuer's metadata (OpenID Connect Discovery 1.0, section 4). */
export function discoveryUrl({ oidcIssuer }: Issuer): string {
  return `${oidcIssuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

const wellKnown = '/.well-known/oauth-protected-resource'

/** Makes the metadata of the protected resource, its path and its URL; undefined if no audience is an https URL. */
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

/** How readers of the docs page sign in (authorization code with PKCE, RFC 7636); undefined unless a client is set. */
export function describeSignIn({ oidcDocsClientId, oidcAudience, oidcScopePrefix }: Issuer) {
  if (oidcDocsClientId === undefined) return undefined
  const resource = oidcAudience[0] as string
  return {
    clientId: oidcDocsClientId,
    scopes: scopes.map((scope) => oidcScopePrefix + scope),
    usePkceWithAuthorizationCodeGrant: true,
    // RFC 8707; some issuers use another parameter.
    additionalQueryStringParams: { resource, audience: resource },
  }
}

type Resource = NonNullable<ReturnType<typeof describeResource>>

/** Serves the metadata, without a token and outside the base path. */
export const serveResource: FastifyPluginAsync<Resource> = async (app, { path, url, metadata }) => {
  // The path is compared as it was sent: it may contain what is special to the router.
  app.get(`${wellKnown}*`, (request, reply) => {
    if (URL.parse(request.url, url)?.pathname !== path) return reply.callNotFound()
    return reply.header('cache-control', 'no-cache').send(metadata)
  })
}
