// The keys of an issuer: fetches them from the URL in its metadata, or from the setting, never from a URL in a token;
// reloads old keys, and keeps using them while the issuer is unavailable.
import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { compactVerify, createLocalJWKSet, type JWSHeaderParameters } from 'jose'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { attempt } from '../attempt.ts'
import { describeFailure, makeOutage } from '../outage.ts'
import { isSecureUrl } from '../setting-values.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { hashToken } from './format.ts'
import { discoveryUrl, type Issuer } from './issuer.ts'

/** Age at which keys are reloaded, and maximum age of keys that are used while the issuer is unavailable. */
const freshMs = 300_000
const staleMs = 86_400_000
/** Maximum numbers of tokens that wait for a load, and of remembered tokens with an unknown key. */
const maxWaiting = 250
const maxMissed = 10_000

/** Maximum size of a document of an issuer, and maximum number of keys that are read from it. */
const maxBytes = 256 * 1024
const maxKeys = 64

const messages = {
  failed: 'the keys of OIDC_ISSUER cannot be loaded; keys loaded earlier are used for up to 24 hours',
  recovered: 'the keys of OIDC_ISSUER are loaded again',
}

/** `key`: no suitable key was loaded since the token was first seen; `unavailable`: no load since then has succeeded. */
type Verdict = 'valid' | 'signature' | 'key' | 'unavailable'

/** `now`: milliseconds of a monotonic clock; `limitMs`: for a load; `pauseMs`: see `retryMs`. */
export type IssuerKeysOptions = { logger: Logger; now?: () => number; limitMs?: number; pauseMs?: number }

/** Loads the keys of an issuer, and verifies signatures with them. */
export function cacheKeys(issuer: Issuer, options: IssuerKeysOptions) {
  const { logger, now = () => performance.now(), limitMs = 2000, pauseMs = 5000 } = options
  const outage = makeOutage(logger, messages, now)
  let keys: ReturnType<typeof createLocalJWKSet> | undefined
  /** When the last load, the one before it, and the last successful load began. */
  let [triedMs, earlierMs, loadedMs] = [-Infinity, -Infinity, -Infinity]
  let loading: Promise<void> | undefined
  /** When each token with an unknown key was first seen, by its hash. */
  const missed = new LRUCache<string, number>({ max: maxMissed })
  let waiting = 0

  /**
   * Verifies the signature of a token, with an unknown key after a load. Rejects with StoreUnavailable if too many
   * tokens wait.
   */
  async function verify(header: JWSHeaderParameters, token: string): Promise<Verdict> {
    // Read before this token may start a load, so that the load counts for it.
    const nowMs = now()
    // When the last load that has ended began. If it failed, old keys are used without waiting for the next one.
    const endedMs = loading ? earlierMs : triedMs
    if (nowMs - loadedMs > freshMs) await (nowMs - endedMs > freshMs ? load() : void load())
    const verdict = await check(header, token)
    // The issuer may have replaced a key that has no id, or kept the id.
    if (verdict === 'signature') void load()
    if (verdict) return verdict
    const hash = hashToken(token)
    const sinceMs = missed.get(hash) ?? nowMs
    missed.set(hash, sinceMs)
    if (waiting >= maxWaiting)
      throw new StoreUnavailable('overloaded', 'too many tokens are waiting for the keys of the issuer')
    waiting++
    await load()
    waiting--
    return (await check(header, token)) ?? (!isStale() && loadedMs >= sinceMs ? 'key' : 'unavailable')
  }

  const isStale = () => now() - loadedMs >= staleMs

  /** Uses the key named by a header, or the only suitable key; undefined without one, or on any error of the library. */
  async function check(header: JWSHeaderParameters, token: string): Promise<Verdict | undefined> {
    const key = isStale() ? undefined : await keys?.(header).catch(() => undefined)
    if (key === undefined) return undefined
    return (await compactVerify(token, key).catch(() => undefined)) ? 'valid' : 'signature'
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

  return { verify, load, retryMs }
}

/**
 * Resolves to the keys. Weak and malformed keys, and keys that are not for signatures, are refused by the library when
 * a token names them. Rejects with any error if the keys cannot be loaded within `limitMs`.
 */
async function loadKeys(issuer: Issuer, limitMs: number) {
  const signal = AbortSignal.timeout(limitMs)
  try {
    const url = issuer.oidcJwksUrl ?? (await discover(issuer, signal))
    const { keys } = await fetchObject(url, signal)
    if (!Array.isArray(keys)) throw new Error(`${url} does not contain a list of keys`)
    const objects = keys.filter((key) => Object(key) === key && !Array.isArray(key))
    return createLocalJWKSet({ keys: objects.slice(0, maxKeys) })
  } catch (error) {
    throw signal.aborted ? new Error(`the issuer did not send its keys within ${limitMs / 1000} s`) : error
  }
}

async function discover(issuer: Issuer, signal: AbortSignal): Promise<string> {
  const url = discoveryUrl(issuer)
  const { issuer: name, jwks_uri: keys } = await fetchObject(url, signal)
  if (name !== issuer.oidcIssuer) throw new Error(`the document at ${url} names another issuer`)
  if (typeof keys !== 'string' || !isSecureUrl(keys))
    throw new Error(`the document at ${url} has no jwks_uri with https`)
  return keys
}

/**
 * Fetches a JSON object, without following redirects. Rejects if the response is anything else or too long. Not with
 * `fetch`: if a proxy (NODE_USE_ENV_PROXY) closes the connection, it reconnects indefinitely, even after an abort.
 */
async function fetchObject(url: string, signal: AbortSignal): Promise<Record<string, unknown>> {
  const { get } = new URL(url).protocol === 'https:' ? https : http
  const request = get(url, { signal, headers: { accept: 'application/json' } })
  // An error after the response has begun is ignored here, because the stream also emits it.
  request.on('error', () => {})
  const [answer] = (await once(request, 'response', { signal })) as [IncomingMessage]
  if (answer.statusCode !== 200) {
    answer.destroy()
    throw new Error(`${url} returned ${answer.statusCode}`)
  }
  let text = ''
  for await (const part of answer.setEncoding('utf8')) {
    text += part
    // Each character is at least one byte.
    if (text.length > maxBytes) throw new Error(`${url} is longer than ${maxBytes} bytes`)
  }
  // A response without a length may end without an error when it is aborted.
  signal.throwIfAborted()
  const value: unknown = attempt(() => JSON.parse(text))
  if (typeof value !== 'object' || value === null) throw new Error(`${url} does not contain a JSON object`)
  return value as Record<string, unknown>
}
