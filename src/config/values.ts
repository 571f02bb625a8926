// Readers for the texts of settings. `name`: the setting as the user gave it, PORT or --port.
import { availableParallelism } from 'node:os'
import proxyAddr from '@fastify/proxy-addr'
import { maxSeconds, maxThreads } from '../limits.ts'
import { engines } from '../store/engines.ts'
import type { Read } from './setting.ts'

/** A setting that cannot be used; the message is one line that names it. */
export class ConfigError extends Error {}

/** The same, as an argument or a flag of a command. */
export class UsageError extends ConfigError {}

/** A number of requests per time. */
export type Rate = { readonly count: number; readonly perMs: number }

/** Makes a reader from `parse`, which returns undefined or NaN for a text that is not `form`, as the message says. */
export function makeReader<T>(form: string, parse: (text: string) => T | undefined) {
  return (text: string, name: string): T => {
    const value = parse(text)
    if (value === undefined || Number.isNaN(value))
      throw new ConfigError(`${name} must be ${form}, not "${text}"`)
    return value
  }
}

/** Makes a reader that takes an empty text for an unset setting: undefined. */
export function optional<T>(read: Read<T>): Read<T | undefined> {
  const readGiven = (text: string, name: string) => (text ? read(text, name) : undefined)
  return Object.assign(readGiven, { choices: read.choices })
}

/** Returns the number that a text of this form is, or NaN for another form and for more than `most`. */
export function toNumber(text: string, form: RegExp, most: number): number {
  return form.test(text) && Number(text) <= most ? Number(text) : Number.NaN
}

const whole = /^[1-9]\d*$/

export const readPort = makeReader('a port from 0 to 65535', (text) => toNumber(text, /^\d+$/, 65_535))

export const readCount = makeReader('a whole number from 1 to 9999999', (text) =>
  toNumber(text, whole, 9_999_999),
)

/** Reads a number of threads; `auto` is one per core, up to `maxThreads`. */
export const readThreads = makeReader(`auto, or a whole number from 1 to ${maxThreads}`, (text) =>
  text === 'auto' ? Math.min(availableParallelism(), maxThreads) : toNumber(text, whole, maxThreads),
)

/** Reads seconds, with fractions, as milliseconds. */
export const readSeconds = makeReader(`seconds from 0 to ${maxSeconds}`, (text) =>
  Math.round(toNumber(text, /^\d+(\.\d+)?$/, maxSeconds) * 1000),
)

/** Reads the URL of a database. Throws ConfigError. */
export function readDatabaseUrl(text: string, name: string): string {
  const engine = engines.find(({ scheme }) => scheme.test(text))
  if (engine === undefined) {
    const prefixes = engines.map(({ name, prefix }) => `${prefix} (${name})`)
    throw new ConfigError(`${name} must start with ${prefixes.join(' or ')}`)
  }
  const fault = engine.findFault?.(text)
  if (fault !== undefined) throw new ConfigError(`${name} ${fault}`)
  return text
}

export const readBasePath = makeReader('a path like /store/v1', (text) => {
  if (!/^(\/[A-Za-z0-9._~-]+)*\/?$/.test(text) || /\/\.{1,2}(\/|$)/.test(text)) return undefined
  return text.endsWith('/') ? text : `${text}/`
})

/** Makes a reader for one of some words, which help and completion find in `choices`. */
export function choose<const T extends string>(...choices: T[]) {
  const read = makeReader(`one of ${choices.join(', ')}`, (text) => choices.find((one) => one === text))
  return Object.assign(read, { choices })
}

/** Reads an https URL, or http on a loopback address, one alone, without credentials, white space and fragment. */
export function readSecureUrl(text: string, name: string): string {
  if (!isSecureUrl(text) || !/^\w+:\/\/[^\s,/?#@\\]+(\/[^\s#\\]*)?$/.test(text))
    throw new ConfigError(`${name} must be a URL with https (http on a loopback address)`)
  return text
}

/** Reads an issuer, which has no query (OpenID Connect Discovery 1.0, section 3). */
export function readIssuer(text: string, name: string): string {
  if (text.includes('?')) throw new ConfigError(`${name} must be a URL without a query`)
  return readSecureUrl(text, name)
}

/** True for https, and for http on a loopback address. */
export function isSecureUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname } = new URL(text)
  const isLoopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname)
  return protocol === 'https:' || (protocol === 'http:' && isLoopback)
}

/** Reads the beginning of a scope (RFC 6749, section 3.3). */
export const readScopePrefix = makeReader('printable ASCII without spaces, " and \\', (text) =>
  /^[\x21\x23-\x5b\x5d-\x7e]{0,200}$/.test(text) ? text : undefined,
)

/** Reads whom to trust: everybody, nobody, or proxies as @fastify/proxy-addr takes them, but not their number. */
export const readTrustProxy = makeReader('true, false or addresses like 10.0.0.0/8', (text) => {
  const flag = readFlag(text)
  if (flag !== undefined) return flag
  const proxies = splitIf(text, (part) => !/^\d+$/.test(part))
  try {
    if (proxies) proxyAddr.compile(proxies)
    return proxies?.join()
  } catch {
    return undefined
  }
})

/** Reads the `origin` of @fastify/cors: true, false, or origins. */
export const readCorsOrigin = makeReader('true, false, * or origins like https://example.org', (text) => {
  if (text === '*') return text
  const origins = splitIf(text, (part) => toOrigin(part) !== undefined)?.map((part) => String(toOrigin(part)))
  return readFlag(text) ?? (origins?.length === 1 ? origins[0] : origins)
})

/** Spells an origin as browsers send it: in lower case, without the usual port (RFC 6454, section 6.2). */
function toOrigin(text: string): string | undefined {
  if (text === 'null') return text
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/\s?#@\\]+$/i.test(text) || !URL.canParse(text)) return undefined
  const { origin, protocol, host } = new URL(text)
  return origin === 'null' ? `${protocol}//${host}` : origin
}

const unitMs: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000 }

/** Reads a rate like 100/s, 600/m or 5000/h; undefined: off. */
export function readRate(text: string, name: string): Rate | undefined {
  if (readFlag(text) === false) return undefined
  const [, count, unit] = /^([1-9]\d{0,6})\/([smh])$/.exec(text) ?? []
  if (unit === undefined)
    throw new ConfigError(`${name} must be a rate like 100/s, 600/m or 5000/h, or off, not "${text}"`)
  return { count: Number(count), perMs: unitMs[unit] as number }
}

function readFlag(text: string): boolean | undefined {
  if (text === '' || text === 'false' || text === 'off') return false
  return text === 'true' || text === 'on' ? true : undefined
}

/** Makes a reader of a list: empty, or one or several of `what` (`a token`), separated by commas. */
export function listOf(what: string) {
  return (text: string, name: string): string[] => {
    const parts = splitList(text)
    if (text !== '' && parts.length === 0)
      throw new ConfigError(`${name} must hold ${what}, or several with commas between them`)
    return parts
  }
}

/** Splits a list by commas, and by lines, as a file may have them. */
export function splitList(text: string): string[] {
  return text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

/** The parts of a list, if there are any and all of them are as asked. */
function splitIf(text: string, isPart: (part: string) => boolean): string[] | undefined {
  const parts = splitList(text)
  return parts.length > 0 && parts.every(isPart) ? parts : undefined
}
