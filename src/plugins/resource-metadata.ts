// The metadata of the protected resource (RFC 9728), which challenges name: where clients get tokens of the issuer.
import type { FastifyPluginAsync } from 'fastify'
import type { Issuer } from '../tokens/issuer.ts'
import { scopes } from '../tokens/tokens.ts'

const wellKnown = '/.well-known/oauth-protected-resource'

type Resource = NonNullable<ReturnType<typeof describeResource>>

/** Serves the metadata, without a token and outside the base path. */
export const resourceMetadata: FastifyPluginAsync<Resource> = async (app, { path, url, metadata }) => {
  // The handler compares the path, which may contain characters that are special to the router.
  app.get(`${wellKnown}*`, (request, reply) => {
    if (URL.parse(request.url, url)?.pathname !== path) return reply.callNotFound()
    return reply.header('cache-control', 'no-cache').send(metadata)
  })
}

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
