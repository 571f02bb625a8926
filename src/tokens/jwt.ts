// Checks the form and the claims of a JWT before any key is looked up (RFC 7515, RFC 7519, RFC 8725, RFC 9068).
import { maxJwtLength } from '../limits.ts'
import type { Issuer } from './issuer.ts'
import { type Scope, scopes } from './tokens.ts'

export const algorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
]

/** Reasons for refusing a token: labels of a metric, with the words of `token explain`. */
export const reasons = {
  form: `it is no JWT of three parts in strict base64url, of at most ${maxJwtLength} characters`,
  header: 'its header is no JSON object, has `crit`, `b64` or `zip`, or a `kid` that is no short string',
  algorithm: `its algorithm is none of ${algorithms.join(', ')}`,
  type: 'its `typ` is not the one that OIDC_TOKEN_TYPE asks for',
  claims: 'its claims are no JSON object, or one that must be there is missing or malformed',
  issuer: 'its `iss` is not OIDC_ISSUER, to the letter',
  audience: 'its `aud` holds none of OIDC_AUDIENCE',
  time: 'it has expired, or begins later, by more than 30 seconds',
  kind: 'it has `cnf`, `nonce`, `at_hash`, `c_hash` or `events`: it is bound to a key, or no access token',
  key: 'no key of the issuer is the one that it names, or fits alone',
  signature: 'its signature is not that of the key',
  unavailable: 'the keys of the issuer cannot be had now',
} as const
export type Refusal = keyof typeof reasons

export type Claims = Record<string, unknown>
export type Jwt = { header: { alg: string; kid?: string }; claims: Claims }

export const toleranceS = 30
const maxKidLength = 256
/** Claims of tokens that are bound to a key, which is not checked here, or that have another purpose. */
const foreign = ['cnf', 'nonce', 'at_hash', 'c_hash', 'events']
const subjectForm = /^[\x20-\x7e]{1,255}$/
const form = /^(?:[A-Za-z0-9_-]+\.){2}[A-Za-z0-9_-]+$/
const text = new TextDecoder('utf-8', { fatal: true })

/** Returns the unverified parts of a token, or the reason for refusing it. */
export function readJwt(token: string, { oidcTokenType }: Issuer): Jwt | Refusal {
  if (token.length > maxJwtLength || !form.test(token)) return 'form'
  const parts = token.split('.')
  if (!parts.every(isCanonical)) return 'form'
  const [header, claims] = parts.map(readObject)
  if (header === undefined || ['crit', 'b64', 'zip'].some((name) => name in header)) return 'header'
  const { alg, kid, typ } = header
  if (kid !== undefined && (typeof kid !== 'string' || kid.length > maxKidLength)) return 'header'
  if (typeof alg !== 'string' || !algorithms.includes(alg)) return 'algorithm'
  if (!isType(typ, oidcTokenType)) return 'type'
  return claims === undefined ? 'claims' : { header: header as Jwt['header'], claims }
}

/** True for canonical base64url: other spellings would be the same token under another name. */
function isCanonical(part: string): boolean {
  return Buffer.from(part, 'base64url').toString('base64url') === part
}

function readObject(part: string): Claims | undefined {
  try {
    const value = JSON.parse(text.decode(Buffer.from(part, 'base64url')))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Compares `typ`, with an optional `application/` (RFC 9068, section 2.1; RFC 7515, section 4.1.9). */
function isType(typ: unknown, wanted: Issuer['oidcTokenType']): boolean {
  if (typ === undefined) return wanted === 'JWT'
  if (typeof typ !== 'string') return false
  const name = typ.toLowerCase().replace(/^application\//, '')
  return name === 'at+jwt' || (wanted === 'JWT' && name === 'jwt')
}

/** Finds a fault of claims; undefined when they are valid now. */
export function findClaimFault(claims: Claims, { oidcIssuer, oidcAudience }: Issuer): Refusal | undefined {
  const { iss, aud, exp, nbf, iat, sub } = claims
  if (typeof iss !== 'string' || typeof sub !== 'string' || !subjectForm.test(sub)) return 'claims'
  if (!isTime(exp) || exp <= 0 || ![nbf, iat].every((time) => time === undefined || isTime(time)))
    return 'claims'
  if (iss !== oidcIssuer) return 'issuer'
  const given = Array.isArray(aud) ? aud : [aud]
  if (!given.every((one) => typeof one === 'string')) return 'claims'
  if (!given.some((one) => oidcAudience.includes(one))) return 'audience'
  if (foreign.some((name) => name in claims)) return 'kind'
  const nowS = Date.now() / 1000
  if (exp + toleranceS <= nowS) return 'time'
  return [nbf, iat].some((time) => Number(time) > nowS + toleranceS) ? 'time' : undefined
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

/** Reads the known scopes among those of the claims, which have the prefix. */
export function readScopes(claims: Claims, issuer: Issuer): ReadonlySet<Scope> {
  const named = new Set(issuer.oidcScopeClaim.flatMap((name) => listOf(claims[name])))
  return new Set(scopes.filter((scope) => named.has(issuer.oidcScopePrefix + scope)))
}

function listOf(value: unknown): unknown[] {
  if (typeof value === 'string') return value.split(' ')
  return Array.isArray(value) ? value : []
}
