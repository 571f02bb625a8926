// Caches the keys of an issuer: reloads old keys, and keeps using them while the issuer is unavailable.
import type { JWSHeaderParameters } from 'jose'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { describeFailure, makeOutage } from '../outage.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { hashToken } from './format.ts'
import type { Issuer } from './issuer.ts'
import { type KeySet, loadKeys } from './load-keys.ts'

/** Age at which keys are reloaded, and maximum age of keys that are used while the issuer is unavailable. */
const freshMs = 300_000
const staleMs = 86_400_000
/** Maximum numbers of tokens that wait for a load, and of remembered tokens with an unknown key. */
const maxWaiting = 250
const maxMissed = 10_000

const words = {
  failed: 'the keys of OIDC_ISSUER cannot be loaded; keys loaded earlier are used for up to 24 hours',
  recovered: 'the keys of OIDC_ISSUER are loaded again',
}

type Key = Awaited<ReturnType<KeySet>>

/** `now`: milliseconds of a monotonic clock; `limitMs`: for a load; `pauseMs`: see `retryMs`. */
export type IssuerKeysOptions = { logger: Logger; now?: () => number; limitMs?: number; pauseMs?: number }

export type IssuerKeys = ReturnType<typeof cacheKeys>

export function cacheKeys(issuer: Issuer, options: IssuerKeysOptions) {
  const { logger, now = () => performance.now(), limitMs = 2000, pauseMs = 5000 } = options
  const outage = makeOutage(logger, words, now)
  let keys: KeySet | undefined
  /** When the last load, the one before it, and the last successful load began. */
  let [triedMs, earlierMs, loadedMs] = [-Infinity, -Infinity, -Infinity]
  let loading: Promise<void> | undefined
  /** When each token with an unknown key was first seen, by its hash. */
  const missed = new LRUCache<string, number>({ max: maxMissed })
  let waiting = 0

  /**
   * Finds the key named by a header, or the only suitable key. Resolves to `key` if no such key was loaded since the
   * token was first seen; to `unavailable` if no load since then has succeeded. Rejects with StoreUnavailable if too
   * many tokens wait.
   */
  async function find(header: JWSHeaderParameters, token: string): Promise<Key | 'key' | 'unavailable'> {
    // Read before this token may start a load, so that the load counts for it.
    const nowMs = now()
    if (nowMs - loadedMs > freshMs) void load()
    const found = await look(header)
    if (found) return found
    const hash = hashToken(token)
    const sinceMs = missed.get(hash) ?? nowMs
    missed.set(hash, sinceMs)
    if (waiting >= maxWaiting)
      throw new StoreUnavailable('overloaded', 'too many tokens are waiting for the keys of the issuer')
    waiting++
    await load()
    waiting--
    return (await look(header)) ?? (!isStale() && loadedMs >= sinceMs ? 'key' : 'unavailable')
  }

  const isStale = () => now() - loadedMs >= staleMs

  /** On any error of the library, no key is suitable for this token. */
  async function look(header: JWSHeaderParameters): Promise<Key | undefined> {
    return isStale() ? undefined : keys?.(header).catch(() => undefined)
  }

  /**
   * Time until the keys may be loaded again. At most two loads begin within `2 * pauseMs`, and none within `pauseMs`
   * after a successful one began, so that a client cannot use up both.
   */
  function retryMs(): number {
    const afterSuccessMs = loadedMs === triedMs ? pauseMs : 0
    return Math.max(triedMs + afterSuccessMs, earlierMs + 2 * pauseMs) - now()
  }

  /** Loads the keys, unless it is too early. Resolves when the load in progress, if any, has ended. Never rejects. */
  async function load(): Promise<void> {
    if (loading || retryMs() > 0) return loading
    earlierMs = triedMs
    triedMs = now()
    // Handles all failures of the issuer, and of a proxy in front of it.
    loading = loadKeys(issuer, limitMs)
      .then((loaded) => {
        keys = loaded
        loadedMs = triedMs
        outage.reportRecovery()
      })
      .catch((error) => outage.reportFailure(describeFailure(error)))
      .finally(() => (loading = undefined))
    return loading
  }

  return { find, load, retryMs }
}
