// The issuer whose tokens are accepted, and the metadata by which clients find it (RFC 9728).
import type { FastifyPluginCallback } from 'fastify'
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

/** Makes the metadata of the protected resource, its path and its URL; undefined if no audience is an https URL. */
export function describeResource({ oidcIssuer, oidcAudience, oidcScopePrefix }: Issuer) {
  const resource = oidcAudience.find(isResource)
  if (resource === undefined) return undefined
  const { origin, pathname, search } = new URL(resource)
  const path = `/.well-known/oauth-protected-resource${pathname === '/' ? '' : pathname}`
  const metadata = {
    resource,
    authorization_servers: [oidcIssuer],
    scopes_supported: scopes.map((scope) => oidcScopePrefix + scope),
    bearer_methods_supported: ['header'],
  }
  return { path, url: origin + path + search, metadata }
}

/** True for an https URL whose path the router can match: decoded, without wildcards and escaped separators. */
function isResource(audience: string): boolean {
  try {
    const decoded = decodeURIComponent(audience)
    if (decoded.includes('*') || decoded !== decodeURI(audience)) return false
    return new URL(decoded).protocol === 'https:'
  } catch {
    return false
  }
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

type Resource = { path: string; metadata: object }

/** Serves the metadata, without a token and outside the base path. */
export const serveResource: FastifyPluginCallback<Resource> = (app, { path, metadata }, done) => {
  // The router matches decoded paths, and treats a single colon as the start of a parameter.
  const url = decodeURI(path).replaceAll(':', '::')
  app.get(url, { schema: { hide: true } }, (_request, reply) =>
    reply.header('cache-control', 'no-cache').send(metadata),
  )
  done()
}
