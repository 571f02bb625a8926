// The accepted issuer of tokens, from the settings.
import type { Settings } from '../settings.ts'
import { scopes } from './tokens.ts'

/** The OIDC_ settings, with an issuer. */
export type Issuer = Pick<Settings, Extract<keyof Settings, `oidc${string}`>> & { oidcIssuer: string }

/** Returns the settings of the issuer; undefined if none is set. */
export const issuerOf = (settings: Settings) =>
  settings.oidcIssuer === undefined ? undefined : (settings as Issuer)

/** Returns the URL of an issuer's metadata (OpenID Connect Discovery 1.0, section 4). */
export const discoveryUrl = ({ oidcIssuer }: Issuer) =>
  `${oidcIssuer.replace(/\/$/, '')}/.well-known/openid-configuration`

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
