// Verifies tokens. A verdict on a token of the store is cached for two seconds: short enough for a revocation to take
// effect in time on every replica, long enough that most requests need no database. Tokens of an issuer, which cannot
// be revoked here, are cached longer, and ACCESS_TOKENS are never verified again.
import { timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { makeOutage } from '../outage.ts'
import type { Token, TokenTable } from '../store/engine.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { inTime } from '../store/in-time.ts'
import { hashToken, isJwt, readTokenId } from './format.ts'
import { scopes } from './tokens.ts'

const verdictMs = 2000
/**
 * Time after a verdict has expired in which a request may still change or show plants. With `verdictMs`, a revocation
 * takes effect within 5 s.
 */
export const verdictGraceMs = 3000
/** Precision of the last use of a token. */
const touchMs = 60_000
/** Maximum number of cached verdicts of each kind. */
const maxVerdicts = 10_000
/** Maximum number of concurrent verifications. Above it, only tokens that were valid before are verified. */
const maxVerifying = 500

/**
 * What a valid token allows. The token must be verified again after `untilMs` of `performance.now()`, so that setting
 * the wall clock cannot prolong it.
 */
export type Grant = { readonly id: string; readonly scopes: ReadonlySet<string>; readonly untilMs: number }

/** Returns the grant of a token, or undefined if it is not valid; synchronously if the verdict is cached. */
export type Verify = (token: string) => Grant | undefined | Promise<Grant | undefined>

/** `verifyIssued`: verifies JWTs. `now`: wall clock, for expiry; `monotonicNow`: clock for the age of verdicts. */
type VerifierOptions = {
  accessTokens: readonly string[]
  logger: Logger
  verifyIssued?: ((token: string) => Promise<Grant | undefined>) | undefined
  now?: () => number
  monotonicNow?: () => number
}

/** Returns `verify`. It throws or rejects with StoreUnavailable, or like `verifyIssued`, if it cannot tell now. */
export function makeVerifier(table: TokenTable, options: VerifierOptions): Verify {
  const { accessTokens, verifyIssued, now = Date.now, monotonicNow = () => performance.now() } = options
  const touch = makeTouch(table, options.logger, now)
  // By SHA-256, so that the time of a look-up reveals nothing about tokens. Node decodes headers as Latin-1 (RFC 9110,
  // section 5.5), but clients send UTF-8.
  const hashOwn = (token: string) => hashToken(Buffer.from(token).toString('latin1').trim())
  const ownGrants = new Map(accessTokens.map((token, index) => [hashOwn(token), makeOwnGrant(index)]))
  // Separate caches, so that a flood of invalid tokens evicts no valid token.
  const good = new LRUCache<string, Grant>({ max: maxVerdicts })
  /** When each invalid token may be verified again. */
  const bad = new LRUCache<string, number>({ max: maxVerdicts })
  /** Tokens that are being verified, so that concurrent requests with the same token share a verdict. */
  const verifying = new Map<string, Promise<Grant | undefined>>()

  async function verifyAnew(token: string, digest: string): Promise<Grant | undefined> {
    const id = readTokenId(token)
    const grant = await (id === undefined ? verifyIssued?.(token) : findStored(id, digest))
    // Setting undefined deletes the former grant.
    good.set(digest, grant)
    if (!grant) bad.set(digest, monotonicNow() + verdictMs)
    return grant
  }

  /** Finds the token with this id in the store. Its hash must equal `digest`. */
  async function findStored(id: string, digest: string): Promise<Grant | undefined> {
    // The age of the grant counts from the start of the query: a slow response may miss a revocation.
    const askedMs = monotonicNow()
    const token = await inTime(table.find(id))
    if (!token || !timingSafeEqual(Buffer.from(token.hash), Buffer.from(digest))) return undefined
    const leftMs = (token.expiresAt ?? Number.POSITIVE_INFINITY) - now()
    if (token.revokedAt !== null || leftMs <= 0) return undefined
    touch(token)
    return { id, scopes: new Set(token.scopes), untilMs: askedMs + Math.min(verdictMs, leftMs) }
  }

  return function verify(token) {
    const digest = hashToken(token)
    const ownGrant = ownGrants.get(digest)
    if (ownGrant) return ownGrant
    const grant = good.get(digest)
    if (grant && grant.untilMs > monotonicNow()) return grant
    if (Number(bad.get(digest)) > monotonicNow()) return undefined
    const running = verifying.get(digest)
    if (running) return running
    if (readTokenId(token) === undefined && !(verifyIssued && isJwt(token))) return undefined
    if (grant === undefined && verifying.size >= maxVerifying)
      throw new StoreUnavailable('overloaded', 'too many tokens are being verified')
    const verdict = verifyAnew(token, digest).finally(() => verifying.delete(digest))
    verifying.set(digest, verdict)
    return verdict
  }
}

/** Returns the grant of one of ACCESS_TOKENS, which cannot be revoked while the process runs. */
function makeOwnGrant(index: number): Grant {
  return { id: `ACCESS_TOKENS ${index + 1}`, scopes: new Set(scopes), untilMs: Number.POSITIVE_INFINITY }
}

/** Returns a function that saves the last use of a token, once a minute. One at a time, as each is a transaction. */
function makeTouch(table: TokenTable, logger: Logger, now: () => number) {
  const outage = makeOutage(logger, {
    failed: 'the last use of a token could not be saved',
    recovered: 'the last use of tokens is saved again',
  })
  /** The last use that was saved or waits to be saved, by id. */
  const used = new LRUCache<string, number>({ max: maxVerdicts })
  const waiting = new Map<string, number>()
  let saving = Promise.resolve()
  const save = (id: string) => {
    const usedAt = Number(waiting.get(id))
    waiting.delete(id)
    const reportFailure = (error: Error) => outage.reportFailure(error, { token: id })
    return table.touch(id, usedAt, usedAt - touchMs).then(outage.reportRecovery, reportFailure)
  }
  return ({ id, lastUsedAt }: Token): void => {
    const nowMs = now()
    // A time in the future was saved while the clock was ahead.
    const isRecent = (at: number | null = null) => at !== null && at + touchMs > nowMs && at <= nowMs
    if (isRecent(lastUsedAt) || isRecent(used.get(id))) return
    used.set(id, nowMs)
    if (!waiting.has(id)) saving = saving.then(() => save(id))
    waiting.set(id, nowMs)
  }
}
