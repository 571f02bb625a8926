// Caches the keys of an issuer: loads them in time, and uses them for a while when the issuer is unavailable.
import type { JWSHeaderParameters } from 'jose'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { keysFreshMs, keysPauseMs, keysStaleMs, maxVerdicts, maxWaitingJwts } from '../limits.ts'
import { Outage } from '../outage.ts'
import { hashToken } from './format.ts'
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
  /** Times at which the last load began, the one before, and the last that succeeded. */
  #triedMs = Number.NEGATIVE_INFINITY
  #earlierMs = Number.NEGATIVE_INFINITY
  #loadedMs = Number.NEGATIVE_INFINITY
  #loading: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  /** Times at which tokens whose key was missing came first, by their hashes. */
  readonly #missed = new LRUCache<string, number>({ max: maxVerdicts })
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
   * Finds the key that a header names, or the only one that fits; `key`: a load that began after the token first came
   * brought none; `unavailable`: it cannot be looked up, or not before `retryMs`. Rejects with StoreUnavailable when too
   * many wait.
   */
  async find(header: JWSHeaderParameters, token: string): Promise<Key | 'key' | 'unavailable'> {
    // Read before the load that this token may begin, which counts for it.
    const nowMs = this.#now()
    if (this.#age > keysFreshMs) void this.load()
    const found = await this.#look(header)
    if (found) return found
    const hash = hashToken(token)
    const sinceMs = this.#missed.get(hash) ?? nowMs
    this.#missed.set(hash, sinceMs)
    if (this.#waiting >= maxWaitingJwts) throw tooManyJwts()
    this.#waiting++
    await this.load()
    this.#waiting--
    const loaded = await this.#look(header)
    if (loaded) return loaded
    const isStale = this.#age >= keysStaleMs
    if (!isStale && this.#loadedMs >= sinceMs) return 'key'
    if (this.#keys && isStale) this.#stale.reportFailure('the issuer has been away for too long')
    void this.load()
    return 'unavailable'
  }

  /**
   * Time until the keys may be loaded again: twice in two pauses, and not at once after a success, so that nobody can use
   * up both loads.
   */
  get retryMs(): number {
    const pauseMs = this.#loadedMs === this.#triedMs ? keysPauseMs : 0
    return Math.max(this.#triedMs + pauseMs, this.#earlierMs + 2 * keysPauseMs) - this.#now()
  }

  get #age(): number {
    return this.#now() - this.#loadedMs
  }

  /** Any error of the library means that there is no key for this token. */
  async #look(header: JWSHeaderParameters): Promise<Key | undefined> {
    return this.#age < keysStaleMs ? this.#keys?.(header).catch(() => undefined) : undefined
  }

  /**
   * Loads the keys: now, or by itself after `retryMs`. Resolves when the load that is under way, if any, is over. Never
   * rejects.
   */
  async load(): Promise<void> {
    if (this.#loading) return this.#loading
    if (this.retryMs > 0) {
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined
        void this.load()
      }, this.retryMs).unref()
      return
    }
    this.#earlierMs = this.#triedMs
    this.#triedMs = this.#now()
    this.#loading = this.#loadNow().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  async #loadNow(): Promise<void> {
    try {
      const { keys, dropped } = await loadKeys(this.#issuer)
      this.#keys = keys
      this.#loadedMs = this.#triedMs
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
