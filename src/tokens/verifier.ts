// Verifies tokens. Verdicts are cached for seconds: short enough for a revocation to take effect in time on every
// replica, long enough that most requests need no database.
import { timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { maxVerdicts, verdictMs } from '../limits.ts'
import { Outage } from '../logging/outage.ts'
import type { Token } from '../store/engine.ts'
import { hashToken, readTokenId } from './format.ts'
import { makeLookUp } from './look-ups.ts'
import { scopes, type Tokens, touchMs } from './tokens.ts'

/**
 * The grant of a token; undefined when it is not valid. It may be used until `untilMs` of `performance.now()`, so that
 * setting the wall clock cannot prolong it.
 */
export type Grant =
  | { readonly id: string; readonly scopes: ReadonlySet<string>; readonly untilMs: number }
  | undefined

const touchWords = {
  gone: 'the use of a token could not be noted',
  still: 'the uses of tokens still cannot be noted',
  back: 'the uses of tokens are noted again',
}

/** `now`: wall clock, for expiry; `monotonicNow`: clock for the age of verdicts. */
export type VerifierOptions = {
  accessTokens: string[]
  logger: Logger
  /** Verifies tokens of another format; `known`: it was valid before. */
  verifyOther?: ((token: string, known: boolean) => Promise<Grant>) | undefined
  now?: () => number
  monotonicNow?: () => number
}

/**
 * Makes `verify(token)`. Verdicts are cached by the SHA-256 of the token, so that the time of a look-up reveals nothing
 * about tokens. It rejects when the store does.
 */
export function makeVerifier(tokens: Tokens, options: VerifierOptions) {
  const { accessTokens, logger, verifyOther } = options
  const { now = Date.now, monotonicNow = () => performance.now() } = options
  const own = new Map(accessTokens.map((token, index) => [hashToken(token), makeOwnGrant(index)]))
  // Separate caches, so that a flood of junk evicts no good verdict.
  const good = new LRUCache<string, NonNullable<Grant>>({ max: maxVerdicts })
  /** Times until which bad tokens need no further look-up. */
  const bad = new LRUCache<string, number>({ max: maxVerdicts })
  const findToken = makeLookUp(tokens)
  const touches = new Outage(logger, touchWords)

  async function lookUp(id: string, digest: string): Promise<Grant> {
    const found = await findToken(id, good.has(digest))
    if (!found || !isValid(found, digest)) {
      good.delete(digest)
      bad.set(digest, monotonicNow() + verdictMs)
      return undefined
    }
    const leftMs = Math.min(verdictMs, (found.expiresAt ?? Number.POSITIVE_INFINITY) - now())
    const grant = { id, scopes: new Set(found.scopes), untilMs: monotonicNow() + leftMs }
    good.set(digest, grant)
    touch(found)
    return grant
  }

  async function verifyIssued(token: string, digest: string): Promise<Grant> {
    const grant = await verifyOther?.(token, good.has(digest))
    if (grant) good.set(digest, grant)
    else good.delete(digest)
    return grant
  }

  function isValid(token: Token, digest: string): boolean {
    const same = timingSafeEqual(Buffer.from(token.hash), Buffer.from(digest))
    return same && token.revokedAt === null && (token.expiresAt ?? Number.POSITIVE_INFINITY) > now()
  }

  function touch({ id, lastUsedAt }: Token): void {
    if ((lastUsedAt ?? 0) + touchMs > now()) return
    tokens.touch(id).then(
      () => touches.reportRecovery(),
      (error) => touches.reportFailure(error, { token: id }),
    )
  }

  return function verify(token: string): Grant | Promise<Grant> {
    // Headers are read as Latin-1 (RFC 9110, section 5.5), and clients put UTF-8 into them.
    const digest = hashToken(Buffer.from(token, 'latin1'))
    const mine = own.get(digest)
    if (mine) return mine
    const grant = good.get(digest)
    const untilMs = grant?.untilMs ?? bad.get(digest)
    if (untilMs !== undefined && untilMs > monotonicNow()) return grant
    const id = readTokenId(token)
    return id === undefined ? verifyIssued(token, digest) : lookUp(id, digest)
  }
}
export type Verify = ReturnType<typeof makeVerifier>

/** Makes the grant of one of ACCESS_TOKENS, which cannot be revoked while the process runs. */
function makeOwnGrant(index: number): Grant {
  return { id: `ACCESS_TOKENS ${index + 1}`, scopes: new Set(scopes), untilMs: Number.POSITIVE_INFINITY }
}
