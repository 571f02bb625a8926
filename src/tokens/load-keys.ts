// Fetches the keys of an issuer from the URL in its metadata, or from the setting; never from a URL in a token.
import { createPublicKey } from 'node:crypto'
import { createLocalJWKSet, type JWK } from 'jose'
import { isSecureUrl } from '../config/values.ts'
import { issuerLoadMs, maxIssuerBytes, maxIssuerKeys } from '../limits.ts'
import { discoveryUrls, type Issuer } from './issuer.ts'

const minRsaBits = 2048
export type KeySet = ReturnType<typeof createLocalJWKSet>

/** Resolves to the usable keys, and the reasons for dropping others. */
export async function loadKeys(issuer: Issuer): Promise<{ keys: KeySet; dropped: string[] }> {
  const signal = AbortSignal.timeout(issuerLoadMs)
  const url = issuer.oidcJwksUrl ?? (await discover(issuer, signal))
  const { keys } = await fetchObject(url, signal)
  if (!Array.isArray(keys)) throw new Error(`${url} has no list of keys`)
  const faults = keys.slice(0, maxIssuerKeys).map(findKeyFault)
  const dropped = faults.flatMap((fault, index) => (fault ? [`${nameOf(keys[index])}: ${fault}`] : []))
  if (keys.length > maxIssuerKeys) dropped.push(`${keys.length - maxIssuerKeys} more than ${maxIssuerKeys}`)
  const chosen = keys.filter((_, index) => index < maxIssuerKeys && faults[index] === undefined)
  return { keys: createLocalJWKSet({ keys: chosen }), dropped }
}

async function discover(issuer: Issuer, signal: AbortSignal): Promise<string> {
  let fault: unknown
  for (const url of discoveryUrls(issuer))
    try {
      const document = await fetchObject(url, signal)
      if (document.issuer !== issuer.oidcIssuer)
        throw new Error(`the document at ${url} is of another issuer`)
      const { jwks_uri: keys } = document
      if (typeof keys !== 'string' || !isSecureUrl(keys)) throw new Error(`${url} names no https jwks_uri`)
      return keys
    } catch (error) {
      fault ??= error
    }
  throw fault
}

/** The reason for not using a key: empty for one that is not for signatures, undefined for a usable one. */
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

/** Fetches a JSON object. Rejects for anything else, and when it is too long. */
async function fetchObject(url: string, signal: AbortSignal): Promise<Record<string, unknown>> {
  const answer = await fetch(url, { signal, redirect: 'manual', headers: { accept: 'application/json' } })
  if (answer.status !== 200) {
    await answer.body?.cancel()
    throw new Error(`${url} answered ${answer.status}`)
  }
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of answer.body as NonNullable<typeof answer.body>) {
    length += chunk.length
    if (length > maxIssuerBytes) throw new Error(`${url} is longer than ${maxIssuerBytes} bytes`)
    chunks.push(chunk)
  }
  const value = JSON.parse(Buffer.concat(chunks).toString())
  if (typeof value !== 'object' || value === null) throw new Error(`${url} has no JSON object`)
  return value
}
