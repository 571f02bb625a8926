// Fetches the keys of an issuer from the URL in its metadata, or from the setting; never from a URL in a token.
import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { createLocalJWKSet } from 'jose'
import { attempt } from '../attempt.ts'
import { isSecureUrl } from '../setting-values.ts'
import { discoveryUrl, type Issuer } from './issuer.ts'

/** Maximum size of a document of an issuer. */
const maxBytes = 256 * 1024
/** Maximum number of keys that are read from it. */
const maxKeys = 64

export type KeySet = ReturnType<typeof createLocalJWKSet>

/**
 * Resolves to the keys. Weak and malformed keys, and keys that are not for signatures, are refused by the library when
 * a token names them. Rejects with any error if the keys cannot be loaded within `limitMs`.
 */
export async function loadKeys(issuer: Issuer, limitMs: number): Promise<KeySet> {
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
