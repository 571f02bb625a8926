// Fetches the keys of an issuer from the URL in its metadata, or from the setting; never from a URL in a token.
import { createPublicKey } from 'node:crypto'
import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { createLocalJWKSet, type JWK } from 'jose'
import { isSecureUrl } from '../setting-values.ts'
import { discoveryUrls, type Issuer } from './issuer.ts'

/** The largest document of an issuer, and the most keys used of it. */
const maxBytes = 256 * 1024
const maxKeys = 64
const minRsaBits = 2048

export type KeySet = ReturnType<typeof createLocalJWKSet>

/**
 * Resolves to the usable keys, and the reasons for dropping others. Rejects with any error if none could be loaded
 * in `limitMs`; `describeFailure` says why.
 */
export async function loadKeys(
  issuer: Issuer,
  limitMs: number,
): Promise<{ keys: KeySet; dropped: string[] }> {
  const signal = AbortSignal.timeout(limitMs)
  const url = issuer.oidcJwksUrl ?? (await discover(issuer, signal))
  const { keys } = await fetchObject(url, signal)
  if (!Array.isArray(keys)) throw new Error(`${url} has no list of keys`)
  const faults = keys.slice(0, maxKeys).map(findKeyFault)
  const dropped = faults.flatMap((fault, index) => (fault ? [`${nameOf(keys[index])}: ${fault}`] : []))
  if (keys.length > maxKeys) dropped.push(`${keys.length - maxKeys} more than ${maxKeys}`)
  const chosen = keys.filter((_, index) => index < maxKeys && faults[index] === undefined)
  return { keys: createLocalJWKSet({ keys: chosen }), dropped }
}

/** Describes in words why a fetch failed. Never throws: the error may be any value that the network code threw. */
export function describeFailure(error: unknown): string {
  const texts: string[] = []
  // The cause may say more, and an AggregateError has no message.
  for (let one = error; texts.length < 4 && typeof one === 'object' && one !== null; ) {
    const { message, code, cause, errors } = one as { [name: string]: unknown }
    const text = typeof message === 'string' && message !== '' ? message : code
    if (typeof text === 'string' && text !== '') texts.push(text)
    one = cause ?? (Array.isArray(errors) ? errors[0] : undefined)
  }
  return texts.join(': ').slice(0, 500) || 'unknown error'
}

async function discover(issuer: Issuer, signal: AbortSignal): Promise<string> {
  let fault: unknown
  for (const url of discoveryUrls(issuer))
    try {
      const { issuer: name, jwks_uri: keys } = await fetchObject(url, signal)
      if (name !== issuer.oidcIssuer) throw new Error(`the document at ${url} is of another issuer`)
      if (typeof keys !== 'string' || !isSecureUrl(keys)) throw new Error(`${url} names no https jwks_uri`)
      return keys
    } catch (error) {
      fault ??= error
    }
  throw fault
}

/**
 * Fetches a JSON object, without following redirects. Rejects for anything else, and when it is too long. `fetch` is not
 * used: through a proxy that closes the connection (NODE_USE_ENV_PROXY) it reconnects for ever, even after it is aborted.
 */
async function fetchObject(url: string, signal: AbortSignal): Promise<Record<string, unknown>> {
  const { get } = new URL(url).protocol === 'https:' ? https : http
  const request = get(url, { signal, headers: { accept: 'application/json' } })
  // An error after the answer has begun is one of its stream, too.
  request.on('error', () => {})
  const [answer] = (await once(request, 'response', { signal })) as [IncomingMessage]
  if (answer.statusCode !== 200) {
    answer.destroy()
    throw new Error(`${url} answered ${answer.statusCode}`)
  }
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of answer) {
    length += chunk.length
    if (length > maxBytes) throw new Error(`${url} is longer than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  // An answer without a length just ends.
  signal.throwIfAborted()
  const value = parse(Buffer.concat(chunks).toString())
  if (typeof value !== 'object' || value === null) throw new Error(`${url} has no JSON object`)
  return value as Record<string, unknown>
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Says why a key is not used: empty for one that is not for signatures, undefined for a usable one. */
function findKeyFault(key: JWK | null): string | undefined {
  if (typeof key !== 'object' || key === null) return 'no key'
  if (key.use !== undefined && key.use !== 'sig') return ''
  if (key.kty === 'oct' || 'd' in key) return 'a secret key'
  try {
    const { asymmetricKeyDetails = {} } = createPublicKey({ key, format: 'jwk' })
    const { modulusLength = minRsaBits, publicExponent = 65_537n } = asymmetricKeyDetails
    return modulusLength < minRsaBits || publicExponent < 3n ? 'weak' : undefined
  } catch {
    return 'malformed'
  }
}

function nameOf(key: JWK | null): string {
  return typeof key?.kid === 'string' ? key.kid.slice(0, 40) : '?'
}
