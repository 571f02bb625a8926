// The types of settings: validation and decoding.
import { isIP } from 'node:net'
import proxyAddr from '@fastify/proxy-addr'
import { Type } from '@sinclair/typebox'
import { attempt } from './attempt.ts'
import { engines } from './store/engines.ts'

/** An invalid setting. The message is one line that names the setting. */
export class SettingError extends Error {}

/** A number of requests per period. */
export type Rate = { readonly count: number; readonly perMs: number }

/**
 * Returns the schema of a setting with a value of type T. `decode` parses a string. It returns undefined if the string
 * does not have the `form`, which completes "NAME must be …". For a more specific message it throws SettingError with
 * the end of the sentence "NAME …".
 */
function decoded<T>(form: string, decode: (given: string) => T | undefined) {
  return { ...Type.Unsafe<T>({ type: 'string' }), form, decode }
}

/** Returns the schema of an enumeration. */
export function oneOf<const T extends string>(...choices: T[]) {
  const find = (given: string) => choices.find((one) => one === given)
  return { ...decoded(`one of ${choices.join(', ')}`, find), choices }
}

/** Returns the schema of a number that matches a pattern and is at most `most`. It is multiplied by `unit`. */
function number(form: string, pattern: RegExp, { most, unit = 1 }: { most: number; unit?: number }) {
  const decode = (given: string) => Math.round(Number(given) * unit)
  return decoded(form, (given) => (pattern.test(given) && Number(given) <= most ? decode(given) : undefined))
}

export const text = decoded('a string', String)

export const port = number('a port from 0 to 65535', /^\d+$/, { most: 65_535 })
export const count = number('a whole number from 1 to 9999999', /^[1-9]\d*$/, { most: 9_999_999 })
/** Decoded to milliseconds. */
export const seconds = number('seconds from 0 to 3600', /^\d+(\.\d+)?$/, { most: 3600, unit: 1000 })

const unitMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000 }

export const rate = decoded('a rate like 100/s, 600/m or 5000/h, or off', (given): Rate | undefined => {
  const [, count, unit = ''] = /^([1-9]\d{0,6})\/([smh])$/.exec(given) ?? []
  return count === undefined ? undefined : { count: Number(count), perMs: unitMs[unit] as number }
})

/** A comma-separated list; an empty string is an empty list. */
export const list = decoded('a comma-separated list with at least one entry', (given) => {
  const parts = split(given)
  return given !== '' && parts.length === 0 ? undefined : parts
})

/** Splits a list at commas and at line feeds, which a file may contain. */
function split(given: string): string[] {
  const parts = given.split(/[,\n]/).flatMap((part) => part.trim() || [])
  if (parts.some(isQuoted)) throw new SettingError('has an entry in quotation marks; remove them')
  return parts
}

/** True for a string in quotation marks, which `docker run --env-file` keeps. */
export const isQuoted = (given: string) => /^(["']).*\1$/s.test(given)

export const host = decoded('an address or a name, such as 127.0.0.1, ::1 or localhost', (given) =>
  /^[\p{L}\p{N}_.:%-]+$/u.test(given) ? given : undefined,
)

export const path = decoded('a path', refuseTilde)

/** Throws for a path that starts with ~, because no shell expands a setting. */
export function refuseTilde(given: string): string {
  if (!/^(file:)?~(\/|$)/.test(given)) return given
  throw new SettingError('has a ~, which is not expanded: use an absolute path')
}

/** Decoded to a path that ends with a slash. */
export const basePath = decoded('a path like /store/v1', (given) => {
  if (!/^(\/[A-Za-z0-9._~-]+)*\/?$/.test(given) || /\/\.{1,2}(\/|$)/.test(given)) return undefined
  return given.endsWith('/') ? given : `${given}/`
})

export const databaseUrl = decoded('the URL of a database', (given) => {
  if (given.includes('\n')) return undefined
  const engine = engines.find(({ scheme }) => scheme.test(given))
  const prefixes = engines.map(({ name, prefix }) => `${prefix} (${name})`)
  if (engine === undefined) throw new SettingError(`must start with ${prefixes.join(' or ')}`)
  const fault = engine.findFault?.(given)
  if (fault !== undefined) throw new SettingError(fault)
  return refuseTilde(given)
})

const switches = new Map(Object.entries({ true: true, on: true, false: false, off: false }))

/** true, false, or addresses for @fastify/proxy-addr. No hop count: clients can forge entries of X-Forwarded-For. */
export const trustProxy = decoded('true, false or addresses like 10.0.0.0/8', (given) => {
  const proxies = split(given)
  // ipaddr.js would read 127.1 as 127.0.0.1, and 010.0.0.1 as 8.0.0.1.
  const isOdd = proxies.some((proxy) => /\d/.test(proxy) && isIP(proxy.replace(/\/.*/, '')) === 0)
  const isValid = proxies.length > 0 && !isOdd && attempt(() => proxyAddr.compile(proxies)) !== undefined
  return switches.get(given) ?? (isValid ? proxies.join() : undefined)
})

/** The `origin` of @fastify/cors: true, false, an origin or several. */
export const corsOrigin = decoded('true, false or origins like https://example.org', (given) => {
  if (given.includes('*'))
    throw new SettingError('must not have a wildcard: name each origin in full, or use true for all')
  const origins = split(given).map(toOrigin)
  if (origins.length === 0 || origins.includes(undefined)) return switches.get(given)
  return origins.length === 1 ? origins[0] : (origins as string[])
})

/** Normalizes an origin as browsers send it: in lower case, without the default port (RFC 6454, section 6.2). */
function toOrigin(given: string): string | undefined {
  if (given === 'null') return given
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/\s?#@\\*]+$/i.test(given) || !URL.canParse(given)) return undefined
  const { origin, protocol, host } = new URL(given)
  return origin === 'null' ? `${protocol}//${host}` : origin
}

/** One URL, without credentials, white space or a fragment. */
export const secureUrl = decoded('an https URL (http on loopback) without user or fragment', (given) =>
  isSecureUrl(given) && /^\w+:\/\/[^\s,/?#@\\]+(\/[^\s#\\]*)?$/.test(given) ? given : undefined,
)

/** An issuer URL has no query (OpenID Connect Discovery 1.0, section 3). */
export const issuer = decoded('an https URL (http on loopback) without user, query or fragment', (given) =>
  given.includes('?') ? undefined : secureUrl.decode(given),
)

/** True for https, and for http on a loopback address. */
export function isSecureUrl(given: string): boolean {
  if (!URL.canParse(given)) return false
  const { protocol, hostname } = new URL(given)
  const isLoopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname)
  return protocol === 'https:' || (protocol === 'http:' && isLoopback)
}

/** The prefix of a scope (RFC 6749, section 3.3). */
export const scopePrefix = decoded(
  'printable ASCII without spaces, quotation marks (") and backslashes',
  (given) => (/^[\x21\x23-\x5b\x5d-\x7e]{0,200}$/.test(given) ? given : undefined),
)

export const httpUrl = decoded('a URL with http or https', (given) =>
  /^https?:\/\//i.test(given) && URL.canParse(given) ? given : undefined,
)
