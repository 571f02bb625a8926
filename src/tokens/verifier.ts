// Says what the bearer of a token may do. Verdicts are kept for seconds: short enough for a revocation to take
// effect everywhere in time, long enough that the path of a request meets no database.
import { timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { maxVerdicts, verdictMs } from '../limits.ts'
import { Outage } from '../logging/outage.ts'
import { readTokenId } from './format.ts'
import { LookUps } from './look-ups.ts'
import { hashToken, type Scope, scopes, type Token, type Tokens, touchMs } from './tokens.ts'

/**
 * The grant of a token; undefined: it is not valid. It may be believed until `untilMs` of the monotonic clock, so that no
 * step of the wall clock makes it last.
 */
export type Grant =
  | { readonly id: string; readonly scopes: ReadonlySet<Scope>; readonly untilMs: number }
  | undefined

const touchWords = {
  gone: 'the use of a token could not be noted',
  still: 'the uses of tokens still cannot be noted',
  back: 'the uses of tokens are noted again',
}

/** `now`: the wall clock, which says when tokens expire; `monotonicNow`: the one that verdicts age by. */
export type VerifierOptions = {
  accessTokens: string[]
  logger: Logger
  /** Judges what has not the form of our own; `digest` stands for the token. */
  verifyOther?: ((token: string, digest: string) => Grant | Promise<Grant>) | undefined
  now?: () => number
  monotonicNow?: () => number
}

/**
 * Makes `verify(token)`. Verdicts are looked up by the SHA-256 of the token, so that the time a look-up takes says
 * nothing about tokens. It rejects when the store does.
 */
export function makeVerifier(
  tokens: Tokens,
  {
    accessTokens,
    logger,
    verifyOther = () => undefined,
    now = Date.now,
    monotonicNow = () => performance.now(),
  }: VerifierOptions,
) {
  const own = new Map(accessTokens.map((token, index) => [hashToken(token), makeOwnGrant(index)]))
  // In caches of their own, so that a flood of junk drives out no good verdict.
  const good = new LRUCache<string, NonNullable<Grant>>({ max: maxVerdicts })
  /** Until when they need not be looked up again. */
  const bad = new LRUCache<string, number>({ max: maxVerdicts })
  const lookUps = new LookUps(tokens)
  const touches = new Outage(logger, touchWords)

  async function lookUp(id: string, digest: string): Promise<Grant> {
    const found = await lookUps.find(id, { known: good.has(digest) })
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
    // The text of a header is Latin-1 (RFC 9110, section 5.5); clients put UTF-8 into it.
    const digest = hashToken(Buffer.from(token, 'latin1'))
    const mine = own.get(digest)
    if (mine) return mine
    const grant = good.get(digest)
    const untilMs = grant?.untilMs ?? bad.get(digest)
    if (untilMs !== undefined && untilMs > monotonicNow()) return grant
    const id = readTokenId(token)
    return id === undefined ? verifyOther(token, digest) : lookUp(id, digest)
  }
}
export type Verify = ReturnType<typeof makeVerifier>

/** Nobody can revoke it while the process runs. */
function makeOwnGrant(index: number): Grant {
  return { id: `ACCESS_TOKENS ${index + 1}`, scopes: new Set(scopes), untilMs: Number.POSITIVE_INFINITY }
}
