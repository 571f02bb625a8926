// All settings as one schema. The flags of `serve`, its help and `plant-store config` are generated from it; a test
// compares the table of docs/configure.md with it. A flag overrides the environment, which overrides `.env` in the
// working directory.
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { maskUrl } from './mask.ts'
import * as is from './setting-values.ts'
import { isQuoted, refuseTilde, SettingError } from './setting-values.ts'

/**
 * `mask`: masks secrets in the value. `hasFile`: the variable with `_FILE` appended may name a file that contains the
 * value. `unset`: shown by help, `config` and docs if the setting has no value.
 */
type About = { mask?: (text: string) => string; hasFile?: true; unset?: string }

/**
 * Describes a setting. `title`: its variable, and the placeholder of its flag, if it has a flag; `schema`: of its
 * value; `preset`: its default.
 */
function set<T extends TSchema>(title: string, schema: T, preset: string, description: string, more?: About) {
  return { ...schema, unset: preset || 'none', ...more, title, default: preset, description }
}

/** Describes a setting without a default. If it is missing, the feature is off, or behaves as described by `unset`. */
const optional = <T extends TSchema>(title: string, schema: T, description: string, more?: About) =>
  Type.Optional({ ...schema, unset: 'off', ...more, title, description })

const logLevel = is.oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent')
const logFormat = is.oneOf('auto', 'json', 'text')
const url = 'file:PATH for SQLite, or postgres://USER:PASSWORD@HOST,HOST/DATABASE for PostgreSQL.'
const secretUrl: About = { mask: maskUrl, hasFile: true }
const secretList: About = { mask: (text) => text.replaceAll(/[^,]+/g, '***'), hasFile: true }
const derived = { unset: '45 % of the file descriptor limit' }
const masked: About = { mask: maskUrl }
const discovered: About = { ...masked, unset: 'discovered' }
const protocol = is.oneOf('http/protobuf')
const sent = 'URL to send traces to, such as http://127.0.0.1:4318. More OTEL_ variables: docs/observe.md.'

const settingsSchema = Type.Object({
  host: set('HOST address', is.host, '127.0.0.1', 'Address to listen on. 0.0.0.0 or :: means all addresses.'),
  port: set('PORT port', is.port, '3000', 'Port to listen on; 0 picks a free one.'),
  databaseUrl: set('DATABASE_URL url', is.databaseUrl, 'file:data/plants.db', url, secretUrl),
  accessTokens: set('ACCESS_TOKENS', is.list, '', 'Comma-separated tokens with all scopes.', secretList),
  firstTokenFile: optional('FIRST_TOKEN_FILE file', is.path, 'File for the first token, instead of stdout.'),
  basePath: set('BASE_PATH path', is.basePath, '/', 'Path prefix of the API, such as /store/v1.'),
  adminPort: optional('ADMIN_PORT port', is.port, 'Port for /livez, /readyz and /metrics.'),
  adminHost: set('ADMIN_HOST address', is.host, '127.0.0.1', 'Address for ADMIN_PORT.'),
  logLevel: set('LOG_LEVEL level', logLevel, 'info', 'Lowest level to log. Access lines have level info.'),
  logFormat: set('LOG_FORMAT format', logFormat, 'auto', 'auto: text on a terminal, otherwise json.'),
  trustProxy: set('TRUST_PROXY', is.trustProxy, 'off', 'Trusted proxies: true, or addresses and subnets.'),
  corsOrigin: set('CORS_ORIGIN', is.corsOrigin, 'off', 'Origins whose pages may call the API; true for all.'),
  rateLimit: optional('RATE_LIMIT', is.rate, 'Requests per token, such as 100/s, 600/m or 5000/h.'),
  maxConnections: optional('MAX_CONNECTIONS', is.count, 'Maximum number of open connections.', derived),
  keepAliveMs: set('KEEP_ALIVE', is.seconds, '72', 'Seconds after which an idle connection is closed.'),
  drainDelayMs: set('DRAIN_DELAY', is.seconds, '0', 'Seconds between /readyz 503 and closing the port.'),
  oidcIssuer: optional('OIDC_ISSUER', is.issuer, 'Issuer of accepted JWTs. Must equal their iss.', masked),
  oidcAudience: set('OIDC_AUDIENCE', is.list, '', 'Accepted audiences, separated by commas.'),
  oidcJwksUrl: optional('OIDC_JWKS_URL', is.secureUrl, "URL of the issuer's keys.", discovered),
  oidcTokenType: set('OIDC_TOKEN_TYPE', is.oneOf('at+jwt', 'JWT'), 'at+jwt', 'Type (typ) of the JWTs.'),
  oidcScopeClaim: set('OIDC_SCOPE_CLAIM', is.list, 'scope,scp,permissions', 'Claims that hold the scopes.'),
  oidcScopePrefix: set('OIDC_SCOPE_PREFIX', is.scopePrefix, '', 'Prefix of plants:read and plants:write.'),
  oidcDocsClientId: optional('OIDC_DOCS_CLIENT_ID', is.text, 'Client ID for signing in on the docs page.'),
  otlpEndpoint: optional('OTEL_EXPORTER_OTLP_ENDPOINT', is.httpUrl, sent, masked),
  otlpProtocol: set('OTEL_EXPORTER_OTLP_PROTOCOL', protocol, 'http/protobuf', 'Protocol for sending traces.'),
})

export type Settings = Static<typeof settingsSchema>
type SettingName = keyof Settings
/** The values of flags, by setting. */
export type Flags = { [K in SettingName]?: string | undefined }

/** A setting. `form`, `decode`: see `decoded`; `choices`: the values of an enumeration. */
type Setting = TSchema & About & { form: string; decode(given: string): unknown; choices?: string[] }

/** The settings as shown by help, `config` and docs. `flag`: such as `--port`; `value`: its placeholder. */
export const settingRows = Object.entries(settingsSchema.properties).map(([key, schema]) => {
  const { title = '', unset = '', choices, description = '', mask = String, hasFile }: Setting = schema
  const [name = '', value] = title.split(' ')
  const flag = value && `--${name.toLowerCase().replaceAll('_', '-')}`
  return { key: key as SettingName, name, flag, value, unset, choices, description, mask, hasFile }
})
type SettingRow = (typeof settingRows)[number]

/**
 * Maps the prefix of a feature's settings to the setting that enables it, which must be declared first. While it is
 * unset, the others are ignored.
 */
const switches: Record<string, SettingName> = { OIDC: 'oidcIssuer', ADMIN: 'adminPort', OTEL: 'otlpEndpoint' }

/** A value and its source. `from`: the kind of source; `name`: the name of the value in that source. */
export type Found = { text: string | undefined; from: string; name: string }

type Sources = { flags: Flags; env: NodeJS.ProcessEnv; file: NodeJS.ProcessEnv }

/**
 * Reads all settings. `found`: their sources. If tracing is enabled, the OTEL_ variables of `.env` are added to `env`,
 * where OpenTelemetry reads them. Throws SettingError.
 */
export function loadSettings(flags: Flags = {}, env = process.env, file = readEnvFile()) {
  const found = {} as Record<SettingName, Found>
  const values: Record<string, unknown> = {}
  for (const row of settingRows) {
    const mainSwitch = switches[row.name.replace(/_.*/, '')] ?? row.key
    const isOff = mainSwitch !== row.key && found[mainSwitch].text === undefined
    found[row.key] = isOff ? byDefault(row) : find(row, { flags, env, file })
    values[row.key] = decode(row.key, found[row.key])
  }
  const settings = values as Settings
  if (settings.oidcIssuer !== undefined && settings.oidcAudience.length === 0)
    throw new SettingError('OIDC_ISSUER requires OIDC_AUDIENCE: the aud claim of tokens for this service')
  if (settings.otlpEndpoint !== undefined) {
    const names = Object.keys({ ...file, ...env }).filter((name) => name.startsWith('OTEL_'))
    for (const name of names) env[name] = clean(env[name] || file[name] || '', name)
  }
  return { settings, found }
}

/** Reads a single setting, for commands. Throws SettingError. */
export function loadSetting<K extends SettingName>(key: K, flags: Flags = {}): Settings[K] {
  const row = settingRows.find((one) => one.key === key) as SettingRow
  return decode(key, find(row, { flags, env: process.env, file: readEnvFile() })) as Settings[K]
}

/** Validates a database URL from another source, such as an argument. `name`: for errors. Throws SettingError. */
export const readDatabaseUrl = (text: string, name: string) =>
  decode('databaseUrl', { text: clean(text, name), from: 'flag', name }) as string

/** Matches a variable in `.env` with a `#` in its value, and not only in a comment after it. */
const cutValue = /^\s*(?:export\s+)?(\w+)\s*=(?:#|(?!\s*['"`])[^#\n]*(?:[^\s#]|,[^\S\n]*)#)/gm

function readEnvFile(): NodeJS.ProcessEnv {
  try {
    const text = readUtf8('.env')
    // Node would cut off the rest of the value, even of a token.
    for (const [, name] of text.matchAll(cutValue))
      if (settingRows.some((row) => row.name === name))
        throw new Error(`# starts a comment in ${name}; enclose the value in quotation marks`)
    return parseEnv(text)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new SettingError(`.env cannot be read: ${(error as Error).message}`)
  }
}

/** Reads a file in UTF-8 without its byte order mark, which editors on Windows may write. */
const readUtf8 = (path: string) => new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))

/** Finds the value of a setting. An empty value counts as missing. */
function find(row: SettingRow, { flags, env, file }: Sources): Found {
  const flag = clean(flags[row.key] ?? '', String(row.flag))
  const given = flag ? { text: flag, from: 'flag', name: String(row.flag) } : undefined
  const found = given ?? findIn(env, row, 'environment') ?? findIn(file, row, '.env') ?? byDefault(row)
  const isOff = found.text === 'off' && byDefault(row).text === undefined
  return isOff ? { ...found, text: undefined } : found
}

function byDefault({ key, name }: SettingRow): Found {
  return { text: settingsSchema.properties[key].default, from: 'default', name }
}

/** Finds the value in a source, or in the file that it names; undefined if neither is set. */
function findIn(variables: NodeJS.ProcessEnv, { name, hasFile }: SettingRow, from: string) {
  const shown = from === '.env' ? `${name} in .env` : name
  const text = clean(variables[name] ?? '', shown)
  const fileName = `${name}_FILE`
  const path = hasFile ? clean(variables[fileName] ?? '', fileName) : ''
  if (path && text) throw new SettingError(`${name} and ${fileName} are both set; set only one`)
  if (path) return { text: readSecret(path, fileName), from: fileName, name: fileName }
  return text ? { text, from, name: shown } : undefined
}

/** Trims a value, such as a secret that ends with a line feed. Throws SettingError if it is in quotation marks. */
function clean(text: string, name: string): string {
  const trimmed = text.trim()
  if (isQuoted(trimmed))
    throw new SettingError(`${name} is in quotation marks; remove them (docker --env-file keeps them)`)
  return trimmed
}

function readSecret(path: string, name: string): string {
  let text = ''
  try {
    text = readUtf8(refuseTilde(path))
  } catch (error) {
    const { message } = error as Error
    throw new SettingError(`${name} ${error instanceof SettingError ? '' : 'cannot be read: '}${message}`)
  }
  if (text.trim() === '') throw new SettingError(`${name} ${path} is empty`)
  return clean(text, `the value in ${name}`)
}

function decode(key: SettingName, { text, name }: Found): unknown {
  if (text === undefined) return undefined
  const setting: Setting = settingsSchema.properties[key]
  const refuse = (reason: string) => new SettingError(`${name} ${reason}`)
  try {
    const value = setting.decode(text)
    if (value !== undefined) return value
  } catch (error) {
    throw error instanceof SettingError ? refuse(error.message) : error
  }
  throw refuse(`must be ${setting.form}${setting.mask ? '' : `, not "${text}"`}`)
}
