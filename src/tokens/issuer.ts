// The issuer whose tokens are accepted, from the settings, and the errors when they cannot be verified now.
import type { Config } from '../config/load-config.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { scopes } from './tokens.ts'

/** The settings, of which those of the issuer are read. */
export type Issuer = Config & { readonly oidcIssuer: string }

/** The issuer of the settings; undefined when none is set. */
export function issuerOf(config: Config): Issuer | undefined {
  const { oidcIssuer } = config
  return oidcIssuer === undefined ? undefined : { ...config, oidcIssuer }
}

/** URLs of an issuer's metadata (OpenID Connect Discovery 1.0, section 4; RFC 8414, section 3.1). */
export function discoveryUrls({ oidcIssuer }: Issuer): [string, string] {
  const { origin, pathname } = new URL(oidcIssuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ]
}

/** Makes the protected resource metadata (RFC 9728) and its URL; undefined when no audience is an https URL. */
export function describeResource({ oidcIssuer, oidcAudience, oidcScopePrefix }: Issuer) {
  const resource = oidcAudience.find((audience) => /^https:\/\//i.test(audience) && URL.canParse(audience))
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

/** Answered as `unread`. The outage of the issuer is logged once, not per request. `retryMs`: when to try again. */
export class IssuerUnavailable extends Error {
  readonly retryMs: number

  constructor(retryMs: number) {
    super('the keys of the issuer cannot be had')
    this.retryMs = retryMs
  }
}

export function tooManyJwts(): StoreUnavailable {
  return new StoreUnavailable('overloaded', 'too many tokens of the issuer wait to be verified')
}
