// Verifies tokens of an issuer (OIDC, RFC 9068, RFC 8725): their form, their claims, and last their signature.
import { compactVerify } from 'jose'
import type { Logger } from 'pino'
import { issuedVerdictMs, maxWaitingJwts, verificationsAtOnce } from '../limits.ts'
import { FairPool } from '../runtime/fair-pool.ts'
import type { Meter } from '../runtime/meter.ts'
import { type Issuer, IssuerUnavailable, tooManyJwts } from './issuer.ts'
import { IssuerKeys } from './issuer-keys.ts'
import { findClaimFault, type Refusal, readJwt, readScopes, reasons, toleranceS } from './jwt.ts'
import type { Grant } from './verifier.ts'

/**
 * Makes `verify(token, known)`, which resolves to undefined when a token is refused. Tokens that are `known`, which were
 * valid before, do not wait behind others. It rejects with IssuerUnavailable, or StoreUnavailable when too many wait.
 */
export function acceptIssuer(issuer: Issuer, { logger, meter }: { logger: Logger; meter: Meter }) {
  const keys = new IssuerKeys(issuer, logger)
  // Not awaited, so that the start does not depend on the issuer.
  void keys.load()
  const line = { most: maxWaitingJwts, refuse: tooManyJwts }
  const pool = new FairPool({ slots: verificationsAtOnce, line })
  const refused: Record<string, number> = Object.fromEntries(Object.keys(reasons).map((one) => [one, 0]))
  const about = 'Requests with a token of the issuer that was refused.'
  meter.counter('plant_store_oidc_refused_total', about, () => refused, 'reason')

  /** Tokens being judged: one that thousands of requests bring at once is judged once. */
  const judging = new Map<string, Promise<Verdict>>()

  return async function verify(token: string, known: boolean): Promise<Grant | undefined> {
    // Whatever else is no token of the issuer, and is not counted as one: in base64url, `{` and what may follow it.
    if (!/^e[wy].*\./.test(token)) return undefined
    const owner = known ? 'known' : 'unknown'
    const means: Means = { keys, run: (work) => pool.run(owner, work) }
    const judged = judging.get(token) ?? judge(token, issuer, means).finally(() => judging.delete(token))
    judging.set(token, judged)
    const verdict = await judged
    if (typeof verdict !== 'string') return verdict
    refused[verdict] = Number(refused[verdict]) + 1
    if (verdict === 'unavailable') throw new IssuerUnavailable(keys.retryMs)
    return undefined
  }
}

type Verdict = Grant | Refusal

/** Returns the grant of a single token, or the reason for its refusal. */
export function explainToken(token: string, issuer: Issuer, logger: Logger): Promise<Verdict> {
  return judge(token, issuer, { keys: new IssuerKeys(issuer, logger), run: (work) => work() })
}

type Means = { keys: IssuerKeys; run: <T>(work: () => Promise<T>) => Promise<T> }

/** Judges a token; `run` schedules the verification of its signature. */
async function judge(token: string, issuer: Issuer, { keys, run }: Means): Promise<Verdict> {
  const read = readJwt(token, issuer)
  if (typeof read === 'string') return read
  const { header, claims } = read
  const fault = findClaimFault(claims, issuer)
  if (fault) return fault
  const key = await keys.find(header, token)
  if (typeof key === 'string') return key
  const signed = await run(() => compactVerify(token, key).catch(() => undefined))
  if (signed === undefined) return 'signature'
  const leftMs = (Number(claims.exp) + toleranceS) * 1000 - Date.now()
  const untilMs = performance.now() + Math.min(issuedVerdictMs, leftMs)
  return { id: `oidc:${claims.sub}`, scopes: readScopes(claims, issuer), untilMs }
}
