// WWW-Authenticate: tells a client what its request lacks (RFC 6750, section 3; RFC 9728, section 5.1).
import type { Scope } from '../../tokens/tokens.ts'

/**
 * Makes the header. `invalid_token`: the token is not valid; a scope: the token lacks it; undefined: no token was sent.
 */
export type Challenge = (lack?: 'invalid_token' | Scope) => string

/** `resource`: URL of the protected resource metadata; `scopePrefix`: beginning of the issuer's scopes. */
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
