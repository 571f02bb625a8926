// Verifies tokens of an issuer (OIDC): form, claims, and last the signature (RFC 7515, RFC 7519, RFC 8725, RFC 9068).
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { decodeJwt, decodeProtectedHeader, type JWSHeaderParameters } from 'jose'
import { problems } from '../../schemas/problems.ts'
import { attempt } from '../attempt.ts'
import type { Meter } from '../metrics.ts'
import { ProblemError } from '../problem-error.ts'
import { isJwt } from './format.ts'
import type { Issuer } from './issuer.ts'
import { cacheKeys, type IssuerKeysOptions } from './issuer-keys.ts'
import { type Scope, scopes } from './tokens.ts'
import type { Grant } from './verifier.ts'

/** Time for which the verdict on a valid token, which cannot be revoked here, is cached. */
const verdictMs = 60_000

/** Maximum length of a token. */
const maxLength = 8192

const algorithms = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ')

/** Reasons for refusing a token: labels of a metric. See docs/secure.md. */
export const reasons = [
  ...['form', 'header', 'algorithm', 'type', 'claims', 'issuer', 'audience', 'time', 'kind'],
  ...['key', 'signature', 'unavailable'],
] as const
export type Reason = (typeof reasons)[number]

/** The claims that are read. Unlike in RFC 9068, section 2.2, `iat` is optional. Numbers are finite. */
const Claims = Type.Object({
  iss: Type.String(),
  sub: Type.String({ pattern: '^[\\x20-\\x7e]{1,255}$' }),
  aud: Type.Union([Type.String(), Type.Array(Type.String())]),
  exp: Type.Number(),
  nbf: Type.Optional(Type.Number()),
  iat: Type.Optional(Type.Number()),
})
type Claims = Static<typeof Claims> & Record<string, unknown>
type Jwt = { header: JWSHeaderParameters; claims: Claims }

const toleranceS = 30
const maxKidLength = 256
/** Claims of tokens that are bound to a key (not supported), or that have another purpose. */
const foreign = ['cnf', 'nonce', 'at_hash', 'c_hash', 'events']
const form = /^(?:[A-Za-z0-9_-]+\.){2}[A-Za-z0-9_-]+$/

/**
 * Returns `verifyIssued(token)`, which resolves to undefined if the token is refused. It rejects with ProblemError if
 * the keys of the issuer are unavailable, and with StoreUnavailable if too many tokens wait for them.
 */
export function makeJwtVerifier(issuer: Issuer, { meter, ...options }: IssuerKeysOptions & { meter: Meter }) {
  const keys = cacheKeys(issuer, options)
  // Not awaited, so that the service starts without the issuer.
  void keys.load()
  const refused: Record<string, number> = Object.fromEntries(reasons.map((one) => [one, 0]))
  const help = 'Refused tokens of the issuer, excluding cached refusals.'
  meter.counter('plant_store_oidc_refused_total', help, () => refused, 'reason')

  return async function verifyIssued(token: string): Promise<Grant | undefined> {
    const verdict = await verifyJwt(token)
    if (typeof verdict === 'object') return verdict
    refused[verdict] = Number(refused[verdict]) + 1
    options.logger.debug({ reason: verdict }, 'a JWT was refused')
    if (verdict !== 'unavailable') return undefined
    const retryS = Math.max(1, Math.ceil(keys.retryMs() / 1000))
    throw new ProblemError(problems.noKeys, { headers: { 'retry-after': String(retryS) } })
  }

  /** Returns the grant of a token, or the reason for refusing it. */
  async function verifyJwt(token: string): Promise<Grant | Reason> {
    const jwt = readJwt(token, issuer)
    if (typeof jwt === 'string') return jwt
    const { header, claims } = jwt
    const verdict = await keys.verify(header, token)
    // The token may have expired while the keys were loaded.
    const reason = verdict === 'valid' ? findClaimFault(claims, issuer) : verdict
    if (reason !== undefined) return reason
    const untilMs = performance.now() + Math.min(verdictMs, (claims.exp + toleranceS) * 1000 - Date.now())
    return { id: `oidc:${claims.sub}`, scopes: readScopes(claims, issuer), untilMs }
  }
}

/** Returns the header and the claims without verifying the signature, or the reason for refusing the token. */
export function readJwt(token: string, issuer: Issuer): Jwt | Reason {
  if (token.length > maxLength || !form.test(token) || !token.split('.').every(isCanonical)) return 'form'
  const header = attempt(() => decodeProtectedHeader(token))
  const claims = attempt(() => decodeJwt(token))
  if (header === undefined || !isJwt(token) || ['crit', 'b64', 'zip'].some((name) => name in header))
    return 'header'
  const { alg, kid, typ } = header
  if (kid !== undefined && (typeof kid !== 'string' || kid.length > maxKidLength)) return 'header'
  if (typeof alg !== 'string' || !algorithms.includes(alg)) return 'algorithm'
  if (!isType(typ, issuer.oidcTokenType)) return 'type'
  if (!Value.Check(Claims, claims)) return 'claims'
  return findClaimFault(claims, issuer) ?? { header, claims }
}

/** True for canonical base64url. Another encoding would be a second spelling of the same token. */
const isCanonical = (part: string) => Buffer.from(part, 'base64url').toString('base64url') === part

/** Compares `typ`, with an optional `application/` (RFC 9068, section 2.1; RFC 7515, section 4.1.9). */
function isType(typ: unknown, wanted: Issuer['oidcTokenType']): boolean {
  if (typeof typ !== 'string') return typ === undefined && wanted === 'JWT'
  const name = typ.toLowerCase().replace(/^application\//, '')
  return name === 'at+jwt' || (wanted === 'JWT' && name === 'jwt')
}

/** Returns the reason for refusing the claims; undefined if they are valid now. */
function findClaimFault(claims: Claims, { oidcIssuer, oidcAudience }: Issuer): Reason | undefined {
  const { iss, aud, exp, nbf = 0, iat = 0 } = claims
  if (iss !== oidcIssuer) return 'issuer'
  if (![aud].flat().some((one) => oidcAudience.includes(one))) return 'audience'
  if (foreign.some((name) => name in claims)) return 'kind'
  const nowS = Date.now() / 1000
  return Math.max(nbf, iat) - toleranceS > nowS || exp + toleranceS <= nowS ? 'time' : undefined
}

/** Returns the known scopes in the claims, without the prefix. */
function readScopes(claims: Claims, issuer: Issuer): ReadonlySet<Scope> {
  const lists = issuer.oidcScopeClaim.map((name) => claims[name])
  const named = new Set(lists.flatMap((list) => (typeof list === 'string' ? list.split(' ') : list)))
  return new Set(scopes.filter((scope) => named.has(issuer.oidcScopePrefix + scope)))
}
