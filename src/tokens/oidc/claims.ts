// Checks the claims of a JWT, and reads its scopes (RFC 7519, RFC 9068).
import { type Scope, scopes } from '../tokens.ts'
import type { Issuer } from './issuer.ts'
import type { Claims, Reason } from './jwt.ts'

export const toleranceS = 30
/** Claims of tokens that are bound to a key, which is not checked here, or that have another purpose. */
const foreign = ['cnf', 'nonce', 'at_hash', 'c_hash', 'events']
const subjectForm = /^[\x20-\x7e]{1,255}$/

/** Finds a fault of claims; undefined when they are valid now. `nowS`: seconds since 1970. */
export function findClaimFault(
  claims: Claims,
  { issuer, audiences }: Issuer,
  nowS: number,
): Reason | undefined {
  const { iss, aud, exp, nbf, iat, sub } = claims
  if (typeof iss !== 'string' || typeof sub !== 'string' || !subjectForm.test(sub)) return 'claims'
  if (!isTime(exp) || exp <= 0 || ![nbf, iat].every((time) => time === undefined || isTime(time)))
    return 'claims'
  if (iss !== issuer) return 'issuer'
  const given = Array.isArray(aud) ? aud : [aud]
  if (!given.every((one) => typeof one === 'string')) return 'claims'
  if (!given.some((one) => audiences.includes(one))) return 'audience'
  if (foreign.some((name) => name in claims)) return 'kind'
  if (exp + toleranceS <= nowS) return 'time'
  return [nbf, iat].some((time) => Number(time) > nowS + toleranceS) ? 'time' : undefined
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

/** Reads the known scopes among those of the claims, which have the prefix. */
export function readScopes(claims: Claims, { scopeClaims, scopePrefix }: Issuer): ReadonlySet<Scope> {
  const named = new Set(scopeClaims.flatMap((name) => listOf(claims[name])))
  return new Set(scopes.filter((scope) => named.has(scopePrefix + scope)))
}

function listOf(value: unknown): unknown[] {
  if (typeof value === 'string') return value.split(' ')
  return Array.isArray(value) ? value : []
}
