// Verifies tokens of an issuer (OIDC, RFC 9068, RFC 8725): their form, their claims, and last their signature.
import { compactVerify } from 'jose'
import { problems } from '../../schemas/problems.ts'
import type { Meter } from '../metrics.ts'
import { ProblemError } from '../problem-error.ts'
import type { Issuer } from './issuer.ts'
import { cacheKeys, type IssuerKeys, type IssuerKeysOptions } from './issuer-keys.ts'
import { findClaimFault, type Reason, readJwt, readScopes, reasons, toleranceS } from './jwt.ts'
import type { Grant } from './verifier.ts'

/** How long a valid token, which cannot be revoked, is accepted without verifying it again. */
const verdictMs = 60_000

/**
 * Makes `verifyIssued(token)`, which resolves to undefined when a token is refused. It rejects with a ProblemError if the
 * keys of the issuer are unavailable, and with StoreUnavailable if too many tokens wait for them.
 */
export function makeJwtVerifier(issuer: Issuer, { meter, ...options }: IssuerKeysOptions & { meter: Meter }) {
  const keys = cacheKeys(issuer, options)
  // Not awaited, so that the start does not depend on the issuer.
  void keys.load()
  const refused: Record<string, number> = Object.fromEntries(reasons.map((one) => [one, 0]))
  const about = 'Tokens of the issuer that were refused, not counting cached refusals.'
  meter.counter('plant_store_oidc_refused_total', about, () => refused, 'reason')

  return async function verifyIssued(token: string): Promise<Grant | undefined> {
    const verdict = await verifyJwt(token, issuer, keys)
    if (typeof verdict === 'object') return verdict
    refused[verdict] = Number(refused[verdict]) + 1
    options.logger.debug({ reason: verdict }, 'a JWT was refused')
    if (verdict !== 'unavailable') return undefined
    const retryS = Math.max(1, Math.ceil(keys.retryMs() / 1000))
    throw new ProblemError(problems.noKeys, { headers: { 'retry-after': String(retryS) } })
  }
}

/** Returns the grant of a token, or why it is refused. */
async function verifyJwt(token: string, issuer: Issuer, keys: IssuerKeys): Promise<Grant | Reason> {
  const jwt = readJwt(token, issuer)
  if (typeof jwt === 'string') return jwt
  const { header, claims } = jwt
  const fault = findClaimFault(claims, issuer)
  if (fault) return fault
  const key = await keys.find(header, token)
  if (typeof key === 'string') return key
  const signed = await compactVerify(token, key).catch(() => undefined)
  if (signed === undefined) return 'signature'
  const leftMs = (claims.exp + toleranceS) * 1000 - Date.now()
  const untilMs = performance.now() + Math.min(verdictMs, leftMs)
  return { id: `oidc:${claims.sub}`, scopes: readScopes(claims, issuer), untilMs }
}
