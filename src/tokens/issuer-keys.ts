// Caches the keys of an issuer: loads them again when they are old, and keeps using them for a while if the issuer is
// unavailable.
import type { JWSHeaderParameters } from 'jose'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { Outage } from '../outage.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { hashToken } from './format.ts'
import type { Issuer } from './issuer.ts'
import { describeFailure, type KeySet, loadKeys } from './load-keys.ts'

/** Time limit of a load. At most two loads begin within two pauses. */
const loadMs = 2000
const pauseMs = 5000
/** Age at which keys are loaded again, and up to which they are used while the issuer is unavailable. */
const freshMs = 300_000
const staleMs = 86_400_000
/** The most tokens that wait for a load, and the most whose first appearance is remembered. */
const maxWaiting = 250
const maxMissed = 10_000

type Key = Awaited<ReturnType<KeySet>>

/** `now`: milliseconds of a monotonic clock. `limitMs`: for a load. */
export type IssuerKeysOptions = { logger: Logger; now?: () => number; limitMs?: number; pauseMs?: number }

export class IssuerKeys {
  readonly #issuer: Issuer
  readonly #now: () => number
  readonly #limitMs: number
  readonly #pauseMs: number
  readonly #outage: Outage
  readonly #stale: Outage
  #keys: KeySet | undefined
  /** When the last load began, the one before, and the last that succeeded. */
  #triedMs = Number.NEGATIVE_INFINITY
  #earlierMs = Number.NEGATIVE_INFINITY
  #loadedMs = Number.NEGATIVE_INFINITY
  #loading: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  /** When each token with an unknown key was first seen, by its hash. */
  readonly #missed = new LRUCache<string, number>({ max: maxMissed })
  #waiting = 0

  constructor(issuer: Issuer, options: IssuerKeysOptions) {
    const { logger, now = () => performance.now() } = options
    const words = (gone: string, back: string) => new Outage(logger, { gone, back }, now)
    this.#issuer = issuer
    this.#now = now
    this.#limitMs = options.limitMs ?? loadMs
    this.#pauseMs = options.pauseMs ?? pauseMs
    this.#outage = words(
      'the keys of OIDC_ISSUER cannot be loaded',
      'the keys of OIDC_ISSUER are loaded again',
    )
    this.#stale = words(
      'the keys of OIDC_ISSUER have expired: requests with its tokens get 503',
      'the tokens of OIDC_ISSUER are accepted again',
    )
  }

  /**
   * Finds the key that a header names, or the only one that fits. Resolves to `key` if there is no such key (a load
   * that began after the token was first seen did not bring it), and to `unavailable` if it cannot be looked up before
   * `retryMs`. Rejects with StoreUnavailable if too many tokens wait.
   */
  async find(header: JWSHeaderParameters, token: string): Promise<Key | 'key' | 'unavailable'> {
    // Read before this token may begin a load, so that this load counts for it.
    const nowMs = this.#now()
    if (this.#age > freshMs) void this.load()
    const found = await this.#look(header)
    if (found) return found
    const hash = hashToken(token)
    const sinceMs = this.#missed.get(hash) ?? nowMs
    this.#missed.set(hash, sinceMs)
    await this.#wait()
    const loaded = await this.#look(header)
    if (loaded) return loaded
    const isStale = this.#age >= staleMs
    if (!isStale && this.#loadedMs >= sinceMs) return 'key'
    if (this.#keys && isStale) this.#stale.reportFailure('the keys could not be loaded for 24 hours')
    void this.load()
    return 'unavailable'
  }

  /**
   * Time until the keys may be loaded again. At most two loads begin within two pauses, and none right after a success,
   * so that nobody can use up both loads.
   */
  get retryMs(): number {
    const afterSuccessMs = this.#loadedMs === this.#triedMs ? this.#pauseMs : 0
    return Math.max(this.#triedMs + afterSuccessMs, this.#earlierMs + 2 * this.#pauseMs) - this.#now()
  }

  get #age(): number {
    return this.#now() - this.#loadedMs
  }

  /** Any error of the library means that there is no key for this token. */
  async #look(header: JWSHeaderParameters): Promise<Key | undefined> {
    return this.#age < staleMs ? this.#keys?.(header).catch(() => undefined) : undefined
  }

  async #wait(): Promise<void> {
    if (this.#waiting >= maxWaiting)
      throw new StoreUnavailable('overloaded', 'too many tokens are waiting for the keys of the issuer')
    this.#waiting++
    try {
      await this.load()
    } finally {
      this.#waiting--
    }
  }

  /**
   * Loads the keys: now, or by itself after `retryMs`. Resolves when the load that is in progress, if any, is over. Never
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
    this.#loading = this.#loadNow()
    return this.#loading
  }

  /** The only place that handles failures of the issuer, or of a proxy in front of it. */
  async #loadNow(): Promise<void> {
    try {
      this.#keys = await loadKeys(this.#issuer, this.#limitMs)
      this.#loadedMs = this.#triedMs
      for (const trouble of [this.#outage, this.#stale]) trouble.reportRecovery()
    } catch (error) {
      this.#outage.reportFailure(describeFailure(error))
    } finally {
      this.#loading = undefined
    }
  }
}
