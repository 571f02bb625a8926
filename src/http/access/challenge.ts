// WWW-Authenticate: what a request lacks (RFC 6750, section 3; RFC 9728, section 5.1).
import type { Scope } from '../../tokens/tokens.ts'

/** `invalid_token`: the token is not good; a scope: the token has not got it; nothing: there was no token. */
export type Challenge = (lack?: 'invalid_token' | Scope) => string

/** `resource`: where the service is described for clients of its issuer; `scopePrefix`: how the issuer's scopes begin. */
export function makeChallenge({ resource, scopePrefix = '' }: ChallengeOptions): Challenge {
  const end = resource === undefined ? '' : `, resource_metadata="${resource}"`
  return (lack) => {
    if (lack === undefined) return `Bearer realm="plant-store"${end}`
    const error =
      lack === 'invalid_token' ? `"${lack}"` : `"insufficient_scope", scope="${scopePrefix}${lack}"`
    return `Bearer realm="plant-store", error=${error}${end}`
  }
}

type ChallengeOptions = { resource: string | undefined; scopePrefix: string | undefined }
