// Checks the claims of a JWT, and reads its scopes (RFC 7519, RFC 9068).
import { type Scope, scopes } from '../tokens.ts'
import type { Issuer } from './issuer.ts'
import type { Claims, Reason } from './jwt.ts'

export const toleranceS = 30
/** A token with one of these is bound to a key that is not asked for here, or meant for something else. */
const foreign = ['cnf', 'nonce', 'at_hash', 'c_hash', 'events']
const subjectForm = /^[\x20-\x7e]{1,255}$/

/** Why claims are refused; undefined when they are good now. `nowS`: seconds since 1970. */
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

/** The scopes that claims name, of those that there are: each with the prefix before it. */
export function readScopes(claims: Claims, { scopeClaims, scopePrefix }: Issuer): ReadonlySet<Scope> {
  const named = new Set(scopeClaims.flatMap((name) => listOf(claims[name])))
  return new Set(scopes.filter((scope) => named.has(scopePrefix + scope)))
}

function listOf(value: unknown): unknown[] {
  if (typeof value === 'string') return value.split(' ')
  return Array.isArray(value) ? value : []
}
