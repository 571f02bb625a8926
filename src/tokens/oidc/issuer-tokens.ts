// Verifies tokens of an issuer (OIDC, RFC 9068, RFC 8725). Good verdicts are cached for a minute, bad ones for seconds;
// concurrent checks of a token are shared.
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { maxVerdicts, maxWaitingJwts, verdictMs, verificationsAtOnce } from '../../limits.ts'
import { FairPool } from '../../runtime/fair-pool.ts'
import type { Meter } from '../../runtime/meter.ts'
import type { Grant } from '../verifier.ts'
import type { Issuer } from './issuer.ts'
import { IssuerKeys } from './issuer-keys.ts'
import { IssuerUnavailable, tooManyJwts } from './issuer-unavailable.ts'
import { judge } from './judge.ts'
import { looksLikeJwt, type Reason, reasons } from './jwt.ts'

type Verdict = NonNullable<Grant> | Reason

export class IssuerTokens {
  readonly #issuer: Issuer
  readonly #keys: IssuerKeys
  readonly #good = new LRUCache<string, NonNullable<Grant>>({ max: maxVerdicts })
  readonly #bad = new LRUCache<string, { reason: Reason; untilMs: number }>({ max: maxVerdicts })
  readonly #judging = new Map<string, Promise<Verdict>>()
  readonly #pool = new FairPool({
    slots: verificationsAtOnce,
    line: { most: maxWaitingJwts, refuse: tooManyJwts },
  })
  readonly #refused = Object.fromEntries(Object.keys(reasons).map((reason) => [reason, 0]))

  constructor(issuer: Issuer, { logger, meter }: { logger: Logger; meter: Meter }) {
    this.#issuer = issuer
    this.#keys = new IssuerKeys(issuer, logger)
    // Not awaited, so that the start does not depend on the issuer.
    void this.#keys.load()
    const name = 'plant_store_oidc_refused_total'
    meter.counter(
      name,
      'Requests with a token of the issuer that was refused.',
      () => this.#refused,
      'reason',
    )
  }

  /** Verifies a token; `digest` is its hash. Rejects with IssuerUnavailable, or StoreUnavailable when too many wait. */
  verify(token: string, digest: string): Grant | Promise<Grant> {
    const nowMs = performance.now()
    const grant = this.#good.get(digest)
    if (grant && grant.untilMs > nowMs) return grant
    const bad = this.#bad.get(digest)
    if (bad && bad.untilMs > nowMs) return this.#settle(bad.reason)
    if (!looksLikeJwt(token)) return undefined
    /* c8 ignore next: that a token was good before shows a minute later */
    const verdict = this.#judging.get(digest) ?? this.#judge(token, digest, grant ? 'known' : 'unknown')
    return verdict.then((made) => this.#settle(made))
  }

  /** Judges a token. Those known to be good do not wait behind others. */
  #judge(token: string, digest: string, owner: 'known' | 'unknown'): Promise<Verdict> {
    const run = <T>(work: () => Promise<T>) => this.#pool.run(owner, work)
    const judging = judge(token, this.#issuer, { keys: this.#keys, run })
      .then((verdict) => this.#keep(digest, verdict))
      .finally(() => this.#judging.delete(digest))
    this.#judging.set(digest, judging)
    return judging
  }

  #keep(digest: string, verdict: Verdict): Verdict {
    if (typeof verdict !== 'string') this.#good.set(digest, verdict)
    else if (verdict !== 'unavailable') {
      this.#good.delete(digest)
      this.#bad.set(digest, { reason: verdict, untilMs: performance.now() + verdictMs })
    }
    return verdict
  }

  #settle(verdict: Verdict): Grant {
    if (typeof verdict !== 'string') return verdict
    this.#refused[verdict] = (this.#refused[verdict] as number) + 1
    if (verdict === 'unavailable') throw new IssuerUnavailable()
    return undefined
  }
}
