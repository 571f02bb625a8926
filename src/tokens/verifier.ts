// Says what the bearer of a token may do. Verdicts are kept for seconds: short enough for a revocation to take
// effect everywhere in time, long enough that the path of a request meets no database.
import { timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { readTokenId } from './format.ts'
import { hashToken, type Scope, scopes, type Token, type Tokens, touchMs } from './tokens.ts'

/** What a token allows; undefined: it is not valid. */
export type Grant = ReadonlySet<Scope> | undefined
type Verdict = { grant: Grant; expiresAt: number }

const verdictMs = 2000
const allScopes: Grant = new Set(scopes)

export type VerifierOptions = { accessTokens: string[]; logger: Logger; now?: () => number }

/**
 * Makes `verify(token)`. Verdicts are looked up by the SHA-256 of the token, so that the time a look-up takes says
 * nothing about tokens. It rejects when the store does.
 */
export function makeVerifier(tokens: Tokens, { accessTokens, logger, now = Date.now }: VerifierOptions) {
  const own = new Set(accessTokens.map(hashToken))
  const verdicts = new LRUCache<string, Verdict>({ max: 10_000 })

  async function lookUp(token: string, digest: string): Promise<Grant> {
    const id = readTokenId(token)
    if (id === undefined) return undefined
    const found = await tokens.find(id)
    const grant = found && isValid(found, digest) ? new Set(found.scopes) : undefined
    const expiresAt = Math.min(now() + verdictMs, found?.expiresAt ?? Number.POSITIVE_INFINITY)
    verdicts.set(digest, { grant, expiresAt })
    if (grant && found) touch(found)
    return grant
  }

  function isValid(token: Token, digest: string): boolean {
    const same = timingSafeEqual(Buffer.from(token.hash), Buffer.from(digest))
    return same && token.revokedAt === null && (token.expiresAt ?? Number.POSITIVE_INFINITY) > now()
  }

  function touch({ id, lastUsedAt }: Token): void {
    if ((lastUsedAt ?? 0) + touchMs > now()) return
    tokens.touch(id).catch((error) => logger.warn({ err: error }, 'the use of a token could not be noted'))
  }

  return function verify(token: string): Grant | Promise<Grant> {
    // The text of a header is Latin-1 (RFC 9110, section 5.5); clients put UTF-8 into it.
    const digest = hashToken(Buffer.from(token, 'latin1'))
    if (own.has(digest)) return allScopes
    const verdict = verdicts.get(digest)
    return verdict && verdict.expiresAt > now() ? verdict.grant : lookUp(token, digest)
  }
}
export type Verify = ReturnType<typeof makeVerifier>
