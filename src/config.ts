// The only reader of the environment. A bad value is one clear line.

import { isIP, isIPv4 } from 'node:net'

export type Config = {
  host: string
  port: number
  databaseUrl: string
  accessTokens: string[]
  /** Starts and ends with a slash. */
  basePath: string
  adminHost: string
  adminPort: number | undefined
  logLevel: string
  trustProxy: boolean | string
  corsOrigin: false | true | string | string[]
}

/** A value of the environment that cannot be used; the message names it. */
export class ConfigError extends Error {}

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

/** Reads the configuration from environment variables. An empty value counts as absent. Throws ConfigError. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const adminPort = env.ADMIN_PORT
  return {
    host: env.HOST || '127.0.0.1',
    port: readPort('PORT', env.PORT || '3000'),
    databaseUrl: readDatabaseUrl('DATABASE_URL', env.DATABASE_URL || 'file:data/plants.db'),
    accessTokens: splitList(env.ACCESS_TOKENS),
    basePath: readBasePath(env.BASE_PATH || '/'),
    adminHost: env.ADMIN_HOST || '127.0.0.1',
    adminPort: adminPort ? readPort('ADMIN_PORT', adminPort) : undefined,
    logLevel: readLogLevel(env.LOG_LEVEL || 'info'),
    trustProxy: readTrustProxy(env.TRUST_PROXY),
    corsOrigin: readCorsOrigin(env.CORS_ORIGIN),
  }
}

function readPort(name: string, text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new ConfigError(`${name} must be a port from 0 to 65535, not "${text}"`)
  return port
}

/** The URL of a database, as the setting or option called `name` gives it. Throws ConfigError. */
export function readDatabaseUrl(name: string, text: string): string {
  if (/^file:./.test(text) && isDecodable(text)) return text
  if (/^postgres(ql)?:\/\/./.test(text)) return text
  // A database URL can hold a password: the message does not repeat it.
  throw new ConfigError(`${name} must start with file: (SQLite) or postgres:// (PostgreSQL)`)
}

function isDecodable(text: string): boolean {
  try {
    return decodeURIComponent(text) !== ''
  } catch {
    return false
  }
}

function readBasePath(text: string): string {
  if (!/^(\/[A-Za-z0-9._~-]+)*\/?$/.test(text) || /\/\.{1,2}(\/|$)/.test(text))
    throw new ConfigError(`BASE_PATH must be a path like /store/v1, not "${text}"`)
  return text.endsWith('/') ? text : `${text}/`
}

function readLogLevel(text: string): string {
  if (!logLevels.includes(text))
    throw new ConfigError(`LOG_LEVEL must be one of ${logLevels.join(', ')}, not "${text}"`)
  return text
}

/** As Fastify takes it: yes or no, or the proxies' addresses. A mere number of proxies makes it trust nobody. */
function readTrustProxy(text = ''): boolean | string {
  const flag = readFlag(text)
  if (flag === undefined && !splitList(text).every(isNetwork))
    throw new ConfigError(`TRUST_PROXY must be true, false or addresses like 10.0.0.0/8, not "${text}"`)
  return flag ?? text
}

/** An address, a subnet, or a name that stands for some of them. */
function isNetwork(text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true
  const [address = '', mask = '32', ...rest] = text.split('/')
  const bits = isIPv4(mask) ? 32 : Number(mask)
  return isIP(address) > 0 && rest.length === 0 && bits > 0 && bits <= (isIPv4(address) ? 32 : 128)
}

/** As @fastify/cors takes it: yes or no, or the origins. */
function readCorsOrigin(text = ''): false | true | string | string[] {
  const flag = readFlag(text)
  if (flag !== undefined) return flag
  const origins = splitList(text)
  if (!origins.every((origin) => /^(\*|null|[a-z][a-z0-9+.-]*:\/\/[^/\s]+)$/i.test(origin)))
    throw new ConfigError(
      `CORS_ORIGIN must be true, false, * or origins like https://example.org, not "${text}"`,
    )
  return origins.length === 1 ? (origins[0] as string) : origins
}

function readFlag(text: string): boolean | undefined {
  if (text === '' || text === 'false' || text === 'off') return false
  return text === 'true' || text === 'on' ? true : undefined
}

function splitList(text = ''): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}
