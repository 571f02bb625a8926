// Caches the keys of an issuer: loads them in time, and uses them for a while when the issuer is unavailable.
import type { JWSHeaderParameters } from 'jose'
import type { Logger } from 'pino'
import { keysCooldownMs, keysFreshMs, keysStaleMs, maxWaitingJwts } from '../../limits.ts'
import { Outage } from '../../logging/outage.ts'
import { type Issuer, tooManyJwts } from './issuer.ts'
import { type KeySet, loadKeys } from './load-keys.ts'

type Key = Awaited<ReturnType<KeySet>>

export class IssuerKeys {
  readonly #issuer: Issuer
  readonly #now: () => number
  readonly #outage: Outage
  readonly #stale: Outage
  readonly #dropped: Outage
  #keys: KeySet | undefined
  #loadedMs = Number.NEGATIVE_INFINITY
  /** Times of the last attempt and of the one before. */
  #triedMs = Number.NEGATIVE_INFINITY
  #earlierMs = Number.NEGATIVE_INFINITY
  #loading: Promise<void> | undefined
  #waiting = 0

  /** `now`: milliseconds of a monotonic clock. */
  constructor(issuer: Issuer, logger: Logger, now = () => performance.now()) {
    const tell = (gone: string, back: string) => new Outage(logger, { gone, back }, now)
    this.#issuer = issuer
    this.#now = now
    this.#outage = tell(
      'the keys of OIDC_ISSUER cannot be loaded',
      'the keys of OIDC_ISSUER are loaded again',
    )
    this.#stale = tell(
      'the keys of OIDC_ISSUER are too old: its tokens are answered 503',
      'the tokens of OIDC_ISSUER are accepted again',
    )
    this.#dropped = tell(
      'some keys of OIDC_ISSUER are not used',
      'no key of OIDC_ISSUER has to be left out any more',
    )
  }

  /**
   * Finds the key that a header names, or the only one that fits; `key`: the issuer has none; `unavailable`: the issuer
   * does not answer. Rejects with StoreUnavailable when too many wait.
   */
  async find(header: JWSHeaderParameters): Promise<Key | 'key' | 'unavailable'> {
    if (this.#age > keysFreshMs) void this.load()
    const found = this.#age < keysStaleMs ? await this.#look(header) : undefined
    if (found) return found
    if (this.#waiting >= maxWaitingJwts) throw tooManyJwts()
    this.#waiting++
    await this.load()
    this.#waiting--
    if (this.#loadedMs >= this.#triedMs) return (await this.#look(header)) ?? 'key'
    if (this.#keys && this.#age >= keysStaleMs)
      this.#stale.reportFailure('the issuer has been away for too long')
    return 'unavailable'
  }

  get #age(): number {
    return this.#now() - this.#loadedMs
  }

  /** Any error of the library means that there is no key for this token. */
  async #look(header: JWSHeaderParameters): Promise<Key | undefined> {
    return this.#keys?.(header).catch(() => undefined)
  }

  /**
   * Loads the keys, at most twice in 10 seconds and once at a time, so that a key published just after an attempt is
   * found by the next. Never rejects.
   */
  load(): Promise<void> {
    if (this.#loading) return this.#loading
    const nowMs = this.#now()
    if (nowMs - this.#earlierMs < keysCooldownMs) return Promise.resolve()
    this.#earlierMs = this.#triedMs
    this.#triedMs = nowMs
    this.#loading = this.#loadNow().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  async #loadNow(): Promise<void> {
    try {
      const { keys, dropped } = await loadKeys(this.#issuer)
      this.#keys = keys
      this.#loadedMs = this.#now()
      for (const trouble of [this.#outage, this.#stale]) trouble.reportRecovery()
      if (dropped.length > 0) this.#dropped.reportFailure(shorten(dropped.join('; ')))
      else this.#dropped.reportRecovery()
    } catch (error) {
      this.#outage.reportFailure(shorten(explain(error as Error)))
    }
  }
}

/** Describes an error of fetch by its cause, as `fetch failed` alone says nothing. */
function explain({ message, cause }: Error): string {
  const { code = message } = Object(cause) as { code?: string }
  return code
}

/** Bounds the text of an issuer in a line of the log. */
function shorten(text: string): string {
  return text.slice(0, 500)
}
