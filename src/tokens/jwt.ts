// Checks the form and the claims of a JWT before any key is looked up (RFC 7515, RFC 7519, RFC 8725, RFC 9068).
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { isJwt } from './format.ts'
import type { Issuer } from './issuer.ts'
import { type Scope, scopes } from './tokens.ts'

/** The longest token. */
const maxLength = 8192

export const algorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
]

/** Reasons for refusing a token: labels of a metric, with the text of `token explain`. */
export const reasons = {
  form: `it is not a JWT: three parts in canonical base64url, at most ${maxLength} characters`,
  header:
    'its header is not a JSON object, starts with white space, contains `crit`, `b64` or `zip`, or has a `kid` that is not a string of at most 256 characters',
  algorithm: `its algorithm is not one of ${algorithms.join(', ')}`,
  type: 'its `typ` does not match OIDC_TOKEN_TYPE',
  claims: 'its claims are not a JSON object, or a required claim is missing or malformed',
  issuer: 'its `iss` does not exactly match OIDC_ISSUER',
  audience: 'its `aud` contains none of the values in OIDC_AUDIENCE',
  time: 'it has expired, or is not valid yet, by more than 30 seconds',
  kind: 'it has `cnf`, `nonce`, `at_hash`, `c_hash` or `events`: it is bound to a key, or it is not an access token',
  key: 'the issuer has no suitable key with its `kid`; or it has no `kid`, and not exactly one key is suitable',
  signature: 'its signature does not match the key',
  unavailable: 'the keys of the issuer are unavailable',
} as const

/** `detail`: the end of a sentence that says what is wrong with the token. */
export type Refusal = { reason: keyof typeof reasons; detail: string }

export function refuse(reason: Refusal['reason'], detail: string = reasons[reason]): Refusal {
  return { reason, detail }
}

export type Claims = Record<string, unknown>
export type Jwt = { header: { alg: string; kid?: string }; claims: Claims }

export const toleranceS = 30
const maxKidLength = 256
/** Claims of tokens that are bound to a key, which is not checked here, or that have another purpose. */
const foreign = ['cnf', 'nonce', 'at_hash', 'c_hash', 'events']
const subjectForm = /^[\x20-\x7e]{1,255}$/
/** Claims that every token needs (RFC 9068, section 2.2). */
const required = ['iss', 'sub', 'aud', 'exp']
const hints: Record<string, string> = {
  sub: ' (Keycloak 25 and later: give the client the scope `basic`)',
}
/** Forms of claims. */
const forms: Record<string, (value: unknown) => boolean> = {
  iss: (value) => typeof value === 'string',
  sub: (value) => typeof value === 'string' && subjectForm.test(value),
  aud: (value) => [value].flat().every((one) => typeof one === 'string'),
  exp: isTime,
  nbf: isTime,
  iat: isTime,
}
const form = /^(?:[A-Za-z0-9_-]+\.){2}[A-Za-z0-9_-]+$/

/** Returns the unverified parts of a token, or why it is refused. */
export function readJwt(token: string, { oidcTokenType }: Issuer): Jwt | Refusal {
  if (token.length > maxLength || !form.test(token)) return refuse('form')
  if (!token.split('.').every(isCanonical)) return refuse('form')
  const header = decode(decodeProtectedHeader, token)
  const claims = decode(decodeJwt, token)
  if (header === undefined || !isJwt(token) || ['crit', 'b64', 'zip'].some((name) => name in header))
    return refuse('header')
  const { alg, kid, typ } = header
  if (kid !== undefined && (typeof kid !== 'string' || kid.length > maxKidLength)) return refuse('header')
  if (typeof alg !== 'string' || !algorithms.includes(alg)) return refuse('algorithm')
  if (!isType(typ, oidcTokenType)) return refuse('type')
  return claims === undefined
    ? refuse('claims', 'its claims are not a JSON object')
    : { header: header as Jwt['header'], claims }
}

/** True for canonical base64url: any other spelling would be a second text for the same token. */
function isCanonical(part: string): boolean {
  return Buffer.from(part, 'base64url').toString('base64url') === part
}

function decode<T>(read: (token: string) => T, token: string): T | undefined {
  try {
    return read(token)
  } catch {
    return undefined
  }
}

/** Compares `typ`, with an optional `application/` (RFC 9068, section 2.1; RFC 7515, section 4.1.9). */
function isType(typ: unknown, wanted: Issuer['oidcTokenType']): boolean {
  if (typeof typ !== 'string') return typ === undefined && wanted === 'JWT'
  const name = typ.toLowerCase().replace(/^application\//, '')
  return name === 'at+jwt' || (wanted === 'JWT' && name === 'jwt')
}

/** Finds a fault of claims; undefined when they are valid now. */
export function findClaimFault(claims: Claims, { oidcIssuer, oidcAudience }: Issuer): Refusal | undefined {
  const missing = required.find((name) => claims[name] === undefined)
  if (missing) return refuse('claims', `its claim \`${missing}\` is missing${hints[missing] ?? ''}`)
  const malformed = Object.entries(forms).find(([name, isValid]) => name in claims && !isValid(claims[name]))
  if (malformed) return refuse('claims', `its claim \`${malformed[0]}\` is malformed`)
  const { iss, aud, exp, nbf, iat } = claims
  if (iss !== oidcIssuer) return refuse('issuer')
  if (![aud].flat().some((one) => oidcAudience.includes(one as string))) return refuse('audience')
  if (foreign.some((name) => name in claims)) return refuse('kind')
  const nowS = Date.now() / 1000
  if (Number(exp) + toleranceS <= nowS) return refuse('time', 'it has expired')
  const isEarly = [nbf, iat].some((time) => Number(time) > nowS + toleranceS)
  return isEarly ? refuse('time', 'it is not valid yet: `nbf` or `iat` is in the future') : undefined
}

function isTime(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value)
}

/** Reads the known scopes among those of the claims, which have the prefix. */
export function readScopes(claims: Claims, issuer: Issuer): ReadonlySet<Scope> {
  const lists = issuer.oidcScopeClaim.map((name) => claims[name])
  const named = new Set(lists.flatMap((list) => (typeof list === 'string' ? list.split(' ') : list)))
  return new Set(scopes.filter((scope) => named.has(issuer.oidcScopePrefix + scope)))
}
