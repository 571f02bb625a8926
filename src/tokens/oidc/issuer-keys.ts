// The keys of an issuer: when they are loaded, and for how long they are believed.
import type { JWSHeaderParameters } from 'jose'
import type { Logger } from 'pino'
import { keysCooldownMs, keysFreshMs, keysStaleMs, maxWaitingJwts } from '../../limits.ts'
import { Outage } from '../../logging/outage.ts'
import type { Issuer } from './issuer.ts'
import { tooManyJwts } from './issuer-unavailable.ts'
import { type KeySet, loadKeys } from './load-keys.ts'

export type Key = Awaited<ReturnType<KeySet>>

export class IssuerKeys {
  readonly #issuer: Issuer
  readonly #now: () => number
  readonly #outage: Outage
  readonly #stale: Outage
  readonly #dropped: Outage
  #keys: KeySet | undefined
  #loadedMs = Number.NEGATIVE_INFINITY
  /** When the last attempt began, and the one before it. */
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
   * The key that a header names, or that fits alone; `key`: the issuer has none; `unavailable`: it cannot say. Rejects
   * with StoreUnavailable when too many wait for it.
   */
  async find(header: JWSHeaderParameters): Promise<Key | 'key' | 'unavailable'> {
    if (this.#age > keysFreshMs) void this.load()
    const found = this.#age < keysStaleMs ? await this.#look(header) : undefined
    if (found) return found
    await this.#waitForLoad()
    if (this.#loadedMs >= this.#triedMs) return (await this.#look(header)) ?? 'key'
    if (this.#keys && this.#age >= keysStaleMs)
      this.#stale.reportFailure('the issuer has been away for too long')
    return 'unavailable'
  }

  get #age(): number {
    return this.#now() - this.#loadedMs
  }

  async #look(header: JWSHeaderParameters): Promise<Key | undefined> {
    try {
      return await this.#keys?.(header)
    } catch {
      // Whatever the library says against it, it is no key for this token.
      return undefined
    }
  }

  async #waitForLoad(): Promise<void> {
    if (this.#waiting >= maxWaitingJwts) throw tooManyJwts()
    this.#waiting++
    await this.load()
    this.#waiting--
  }

  /**
   * One attempt at a time, and two in 10 seconds, whatever comes of them: a key that was published just after the first
   * is found by the second. Never rejects.
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

/** `fetch failed` says nothing: its cause has a code. */
function explain({ message, cause }: Error): string {
  const { code = message } = Object(cause) as { code?: string }
  return code
}

/** The issuer does not decide how long a line of the log is. */
function shorten(text: string): string {
  return text.slice(0, 500)
}
