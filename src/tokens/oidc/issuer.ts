// The issuer whose tokens are accepted, from the settings.
import type { Config } from '../../config/load-config.ts'
import { scopes } from '../tokens.ts'

/** `audiences`: one of them must be in `aud`; `scopeClaims`: claims whose scopes are combined. */
export type Issuer = {
  readonly issuer: string
  readonly audiences: readonly string[]
  readonly jwksUrl: string | undefined
  readonly tokenType: 'at+jwt' | 'JWT'
  readonly scopeClaims: readonly string[]
  readonly scopePrefix: string
}

export type IssuerConfig = Pick<
  Config,
  'oidcIssuer' | 'oidcAudience' | 'oidcJwksUrl' | 'oidcTokenType' | 'oidcScopeClaim' | 'oidcScopePrefix'
>

/** Makes the issuer; undefined when none is set. */
export function issuerOf(config: IssuerConfig): Issuer | undefined {
  if (config.oidcIssuer === undefined) return undefined
  return {
    issuer: config.oidcIssuer,
    audiences: config.oidcAudience,
    jwksUrl: config.oidcJwksUrl,
    tokenType: config.oidcTokenType,
    scopeClaims: config.oidcScopeClaim,
    scopePrefix: config.oidcScopePrefix,
  }
}

/** URLs of an issuer's metadata (OpenID Connect Discovery 1.0, section 4; RFC 8414, section 3.1). */
export function discoveryUrls({ issuer }: Pick<Issuer, 'issuer'>): [string, string] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ]
}

/** Makes the protected resource metadata (RFC 9728) and its URL; undefined when no audience is an https URL. */
export function describeResource({ issuer, audiences, scopePrefix }: Issuer) {
  const resource = audiences.find((audience) => /^https:\/\//i.test(audience) && URL.canParse(audience))
  if (resource === undefined) return undefined
  const { origin, pathname } = new URL(resource)
  const path = `/.well-known/oauth-protected-resource${pathname === '/' ? '' : pathname}`
  const metadata = {
    resource,
    authorization_servers: [issuer],
    scopes_supported: scopes.map((scope) => scopePrefix + scope),
    bearer_methods_supported: ['header'],
  }
  return { path, url: origin + path, metadata }
}
