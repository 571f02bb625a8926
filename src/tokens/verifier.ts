// Says what the bearer of a token may do. Verdicts are kept for seconds: short enough for a revocation to take
// effect everywhere in time, long enough that the path of a request meets no database.
import { timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { Outage } from '../log/outage.ts'
import { readTokenId } from './format.ts'
import { LookUps } from './look-ups.ts'
import { hashToken, type Scope, scopes, type Token, type Tokens, touchMs } from './tokens.ts'

/**
 * What a token allows; undefined: it is not valid. It may be believed until `untilMs` of the monotonic clock, so that no
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

const verdictMs = 2000
const maxVerdicts = 10_000

/** `now`: the wall clock, which says when tokens expire; `monotonicNow`: the one that verdicts age by. */
export type VerifierOptions = {
  accessTokens: string[]
  logger: Logger
  now?: () => number
  monotonicNow?: () => number
}

/**
 * Makes `verify(token)`. Verdicts are looked up by the SHA-256 of the token, so that the time a look-up takes says
 * nothing about tokens. It rejects when the store does.
 */
export function makeVerifier(
  tokens: Tokens,
  { accessTokens, logger, now = Date.now, monotonicNow = () => performance.now() }: VerifierOptions,
) {
  const own = new Map(accessTokens.map((token, index) => [hashToken(token), makeOwnGrant(index)]))
  // In caches of their own, so that a flood of junk drives out no good verdict.
  const good = new LRUCache<string, NonNullable<Grant>>({ max: maxVerdicts })
  /** Until when they need not be looked up again. */
  const bad = new LRUCache<string, number>({ max: maxVerdicts })
  const lookUps = new LookUps(tokens)
  const touches = new Outage(logger, touchWords)

  async function lookUp(token: string, digest: string): Promise<Grant> {
    const id = readTokenId(token)
    if (id === undefined) return undefined
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
      () => touches.holds(),
      (error) => touches.fails(error, { token: id }),
    )
  }

  return function verify(token: string): Grant | Promise<Grant> {
    // The text of a header is Latin-1 (RFC 9110, section 5.5); clients put UTF-8 into it.
    const digest = hashToken(Buffer.from(token, 'latin1'))
    const mine = own.get(digest)
    if (mine) return mine
    const grant = good.get(digest)
    const untilMs = grant?.untilMs ?? bad.get(digest)
    return untilMs !== undefined && untilMs > monotonicNow() ? grant : lookUp(token, digest)
  }
}
export type Verify = ReturnType<typeof makeVerifier>

/** Nobody can revoke it while the process runs. */
function makeOwnGrant(index: number): Grant {
  return { id: `ACCESS_TOKENS ${index + 1}`, scopes: new Set(scopes), untilMs: Number.POSITIVE_INFINITY }
}
