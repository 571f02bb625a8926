// Checks the form and the claims of a JWT before any key is looked up (RFC 7515, RFC 7519, RFC 8725, RFC 9068).
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { attempt } from '../attempt.ts'
import { isJwt } from './format.ts'
import type { Issuer } from './issuer.ts'
import { type Scope, scopes } from './tokens.ts'

/** The longest token. */
const maxLength = 8192

const algorithms = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ')

/** Reasons for refusing a token: labels of a metric. See docs/secure.md. */
export const reasons = [
  ...['form', 'header', 'algorithm', 'type', 'claims', 'issuer', 'audience', 'time', 'kind'],
  ...['key', 'signature', 'unavailable'],
] as const
export type Reason = (typeof reasons)[number]

/** The claims that are read. Numbers are finite. Those of RFC 9068, section 2.2, are required. */
const Claims = Type.Object({
  iss: Type.String(),
  sub: Type.String({ pattern: '^[\\x20-\\x7e]{1,255}$' }),
  aud: Type.Union([Type.String(), Type.Array(Type.String())]),
  exp: Type.Number(),
  nbf: Type.Optional(Type.Number()),
  iat: Type.Optional(Type.Number()),
})
type Claims = Static<typeof Claims> & Record<string, unknown>
type Jwt = { header: { alg: string; kid?: string }; claims: Claims }

export const toleranceS = 30
const maxKidLength = 256
/** Claims of tokens that are bound to a key, which is not checked here, or that have another purpose. */
const foreign = ['cnf', 'nonce', 'at_hash', 'c_hash', 'events']
const form = /^(?:[A-Za-z0-9_-]+\.){2}[A-Za-z0-9_-]+$/

/** Returns the unverified parts of a token, or why it is refused. */
export function readJwt(token: string, { oidcTokenType }: Issuer): Jwt | Reason {
  if (token.length > maxLength || !form.test(token) || !token.split('.').every(isCanonical)) return 'form'
  const header = attempt(() => decodeProtectedHeader(token))
  const claims = attempt(() => decodeJwt(token))
  if (header === undefined || !isJwt(token) || ['crit', 'b64', 'zip'].some((name) => name in header))
    return 'header'
  const { alg, kid, typ } = header
  if (kid !== undefined && (typeof kid !== 'string' || kid.length > maxKidLength)) return 'header'
  if (typeof alg !== 'string' || !algorithms.includes(alg)) return 'algorithm'
  if (!isType(typ, oidcTokenType)) return 'type'
  return Value.Check(Claims, claims) ? { header: header as Jwt['header'], claims } : 'claims'
}

/** True for canonical base64url: any other spelling would be a second text for the same token. */
function isCanonical(part: string): boolean {
  return Buffer.from(part, 'base64url').toString('base64url') === part
}

/** Compares `typ`, with an optional `application/` (RFC 9068, section 2.1; RFC 7515, section 4.1.9). */
function isType(typ: unknown, wanted: Issuer['oidcTokenType']): boolean {
  if (typeof typ !== 'string') return typ === undefined && wanted === 'JWT'
  const name = typ.toLowerCase().replace(/^application\//, '')
  return name === 'at+jwt' || (wanted === 'JWT' && name === 'jwt')
}

/** Returns why claims are refused; undefined when they are valid now. */
export function findClaimFault(claims: Claims, { oidcIssuer, oidcAudience }: Issuer): Reason | undefined {
  const { iss, aud, exp, nbf = 0, iat = 0 } = claims
  if (iss !== oidcIssuer) return 'issuer'
  if (![aud].flat().some((one) => oidcAudience.includes(one))) return 'audience'
  if (foreign.some((name) => name in claims)) return 'kind'
  const nowS = Date.now() / 1000
  return Math.max(nbf, iat) - toleranceS > nowS || exp + toleranceS <= nowS ? 'time' : undefined
}

/** Reads the known scopes among those of the claims, which have the prefix. */
export function readScopes(claims: Claims, issuer: Issuer): ReadonlySet<Scope> {
  const lists = issuer.oidcScopeClaim.map((name) => claims[name])
  const named = new Set(lists.flatMap((list) => (typeof list === 'string' ? list.split(' ') : list)))
  return new Set(scopes.filter((scope) => named.has(issuer.oidcScopePrefix + scope)))
}
