// Readers for the texts of settings. `name`: the setting as the user gave it, PORT or --port.
import { isIP, isIPv4 } from 'node:net'
import { availableParallelism } from 'node:os'
import { maxSeconds, maxThreads } from '../limits.ts'
import { engines } from '../store/engines.ts'

/** A setting that cannot be used; the message is one line that names it. */
export class ConfigError extends Error {}

/** The same, as an argument or a flag of a command. */
export class UsageError extends ConfigError {}

/** A number of requests per time. */
export type Rate = { readonly count: number; readonly perMs: number }

export function readPort(text: string, name: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new ConfigError(`${name} must be a port from 0 to 65535, not "${text}"`)
  return port
}

/** Reads the URL of a database. Throws ConfigError. */
export function readDatabaseUrl(text: string, name: string): string {
  const engine = engines.find(({ scheme }) => scheme.test(text))
  if (engine === undefined) {
    const prefixes = engines.map(({ name, prefix }) => `${prefix} (${name})`)
    throw new ConfigError(`${name} must start with ${prefixes.join(' or ')}`)
  }
  const fault = engine.findFault(text)
  if (fault !== undefined) throw new ConfigError(`${name} ${fault}`)
  return text
}

export function readBasePath(text: string, name: string): string {
  if (!/^(\/[A-Za-z0-9._~-]+)*\/?$/.test(text) || /\/\.{1,2}(\/|$)/.test(text))
    throw new ConfigError(`${name} must be a path like /store/v1, not "${text}"`)
  return text.endsWith('/') ? text : `${text}/`
}

/** Makes a reader for one of some words, which help and completion find in `choices`. */
export function choose<const T extends string>(...choices: T[]) {
  const read = (text: string, name: string): T => {
    const choice = choices.find((one) => one === text)
    if (choice !== undefined) return choice
    throw new ConfigError(`${name} must be one of ${choices.join(', ')}, not "${text}"`)
  }
  return Object.assign(read, { choices })
}

/** Reads an https URL, or http on a loopback address, without credentials, white space and fragment. Empty: none. */
export function readSecureUrl(text: string, name: string): string | undefined {
  if (text === '') return undefined
  if (!isSecureUrl(text) || !/^\w+:\/\/[^\s/?#@\\]+(\/[^\s#\\]*)?$/.test(text))
    throw new ConfigError(`${name} must be a URL with https (http on a loopback address)`)
  return text
}

/** Reads an issuer, which has no query (OpenID Connect Discovery 1.0, section 3). */
export function readIssuer(text: string, name: string): string | undefined {
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
export function readScopePrefix(text: string, name: string): string {
  if (!/^[\x21\x23-\x5b\x5d-\x7e]{0,200}$/.test(text))
    throw new ConfigError(`${name} must be printable ASCII without spaces, " and \\`)
  return text
}

/** Reads Fastify's `trustProxy`: true, false, or proxies' addresses. With a number of proxies Fastify trusts none. */
export function readTrustProxy(text: string, name: string): boolean | string {
  const flag = readFlag(text)
  if (flag !== undefined) return flag
  const networks = splitList(text)
  if (networks.length === 0 || !networks.every(isNetwork))
    throw new ConfigError(`${name} must be true, false or addresses like 10.0.0.0/8, not "${text}"`)
  return networks.join()
}

/** True for an address, a subnet, or Fastify's name for a range of addresses. */
function isNetwork(text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true
  const [address = '', mask = '32', ...rest] = text.split('/')
  const bits = isIPv4(address) && isNetmask(mask) ? 32 : readBits(mask)
  return isIP(address) > 0 && rest.length === 0 && bits > 0 && bits <= (isIPv4(address) ? 32 : 128)
}

/** True for one bits followed by zero bits, like 255.255.0.0. */
function isNetmask(text: string): boolean {
  if (!isIPv4(text)) return false
  const bits = text.split('.').map((part) => Number(part).toString(2).padStart(8, '0'))
  return /^1+0*$/.test(bits.join(''))
}

function readBits(text: string): number {
  return /^\d{1,3}$/.test(text) ? Number(text) : 0
}

/** Reads the `origin` of @fastify/cors: true, false, or origins. */
export function readCorsOrigin(text: string, name: string): false | true | string | string[] {
  const flag = readFlag(text)
  if (flag !== undefined) return flag
  if (text === '*') return text
  const origins = splitList(text)
  if (
    origins.length === 0 ||
    !origins.every((origin) => /^(null|[a-z][a-z0-9+.-]*:\/\/[^/\s]+)$/i.test(origin))
  )
    throw new ConfigError(`${name} must be true, false, * or origins like https://example.org, not "${text}"`)
  return origins.length === 1 ? (origins[0] as string) : origins
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

/** Reads a count from 1; undefined: unset. */
export function readCount(text: string, name: string): number | undefined {
  if (text === '') return undefined
  if (!/^[1-9]\d{0,6}$/.test(text))
    throw new ConfigError(`${name} must be a whole number from 1 to 9999999, not "${text}"`)
  return Number(text)
}

/** Reads a number of threads; `auto` is one per core, up to `maxThreads`. */
export function readThreads(text: string, name: string): number {
  if (text === 'auto') return Math.min(availableParallelism(), maxThreads)
  if (!/^[1-9]\d{0,2}$/.test(text) || Number(text) > maxThreads)
    throw new ConfigError(`${name} must be auto, or a whole number from 1 to ${maxThreads}, not "${text}"`)
  return Number(text)
}

/** Reads seconds, with fractions, as milliseconds. */
export function readSeconds(text: string, name: string): number {
  const seconds = Number(text)
  if (!/^\d+(\.\d+)?$/.test(text) || seconds > maxSeconds)
    throw new ConfigError(`${name} must be seconds from 0 to ${maxSeconds}, not "${text}"`)
  return Math.round(seconds * 1000)
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

export function splitList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}
