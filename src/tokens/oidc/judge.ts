// Judges a token of an issuer: its form, its claims, and last its signature.
import { compactVerify } from 'jose'
import { issuedVerdictMs } from '../../limits.ts'
import type { Grant } from '../verifier.ts'
import { findClaimFault, readScopes, toleranceS } from './claims.ts'
import type { Issuer } from './issuer.ts'
import type { IssuerKeys, Key } from './issuer-keys.ts'
import { type Reason, readJwt } from './jwt.ts'

type Run = <T>(work: () => Promise<T>) => Promise<T>

/** Returns the grant of a token, or the reason for its refusal. `run` schedules the verification of its signature. */
export async function judge(
  token: string,
  issuer: Issuer,
  { keys, run = (work) => work() }: { keys: IssuerKeys; run?: Run },
): Promise<NonNullable<Grant> | Reason> {
  const read = readJwt(token, issuer)
  if (typeof read === 'string') return read
  const { header, claims } = read
  const fault = findClaimFault(claims, issuer, Date.now() / 1000)
  if (fault) return fault
  const key = await keys.find(header)
  if (typeof key === 'string') return key
  if (!(await run(() => isSigned(token, key)))) return 'signature'
  const leftMs = (Number(claims.exp) + toleranceS) * 1000 - Date.now()
  const untilMs = performance.now() + Math.min(issuedVerdictMs, leftMs)
  return { id: `oidc:${claims.sub}`, scopes: readScopes(claims, issuer), untilMs }
}

async function isSigned(token: string, key: Key): Promise<boolean> {
  try {
    await compactVerify(token, key)
    return true
  } catch {
    return false
  }
}
