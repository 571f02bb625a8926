// Every setting, once: environment variables, files of secrets, flags of `serve`, help, docs and `plant-store config` are
// made from this.
import { maskUrl } from './mask.ts'
import { type Setting, setting } from './setting.ts'
import { traceSettings } from './trace-settings.ts'
import {
  choose,
  listOf,
  optional,
  readBasePath,
  readCorsOrigin,
  readCount,
  readDatabaseUrl,
  readIssuer,
  readPort,
  readRate,
  readScopePrefix,
  readSeconds,
  readSecureUrl,
  readThreads,
  readTrustProxy,
} from './values.ts'

export const settings = {
  host: setting('HOST address', String, {
    description: 'Address to listen on; 0.0.0.0 or :: for all of them.',
    default: '127.0.0.1',
  }),
  port: setting('PORT port', readPort, {
    description: 'Port to listen on; 0 picks a free one.',
    default: '3000',
  }),
  threads: setting('THREADS count', readThreads, {
    description: 'Threads that serve requests, in one process; auto: one per core.',
    default: '1',
  }),
  databaseUrl: setting('DATABASE_URL url', readDatabaseUrl, {
    description:
      'file:PATH for SQLite, postgres://USER:PASSWORD@HOST/DATABASE for PostgreSQL; HOST:5432,HOST:5432 for several servers.',
    default: 'file:data/plants.db',
    mask: maskUrl,
    hasFile: true,
  }),
  accessTokens: setting('ACCESS_TOKENS tokens', listOf('a token'), {
    description:
      'Your own tokens, with all scopes, separated by commas; make them at least 16 characters long.',
    default: '(none)',
    mask: (text) => text.replaceAll(/[^,\s]+/g, '***'),
    hasFile: true,
  }),
  oidcIssuer: setting('OIDC_ISSUER url', optional(readIssuer), {
    description:
      'Issuer whose JWTs are accepted as well: an https URL, exactly as in iss. Needs OIDC_AUDIENCE.',
    default: '(off)',
  }),
  oidcAudience: setting('OIDC_AUDIENCE names', listOf('a name'), {
    description: 'Audiences, separated by commas; the aud of a JWT must contain one of them.',
    default: '(off)',
  }),
  oidcJwksUrl: setting('OIDC_JWKS_URL url', optional(readSecureUrl), {
    description: 'URL of the keys of the issuer, if it has no discovery document.',
    default: '(as the issuer says)',
  }),
  oidcTokenType: setting('OIDC_TOKEN_TYPE type', choose('at+jwt', 'JWT'), {
    description: 'Type (typ) of the JWTs. at+jwt: RFC 9068; JWT also accepts at+jwt and no typ.',
    default: 'at+jwt',
  }),
  oidcScopeClaim: setting('OIDC_SCOPE_CLAIM names', listOf('a name'), {
    description: 'Claims that hold the scopes of a JWT, separated by commas.',
    default: 'scope,scp,permissions',
  }),
  oidcScopePrefix: setting('OIDC_SCOPE_PREFIX text', readScopePrefix, {
    description: 'Prefix of plants:read and plants:write in those scopes.',
    default: '(none)',
  }),
  oidcDocsClientId: setting('OIDC_DOCS_CLIENT_ID id', optional(String), {
    description: 'Client of the issuer with which readers sign in on the docs page (PKCE).',
    default: '(off)',
  }),
  firstTokenFile: setting('FIRST_TOKEN_FILE file', optional(String), {
    description: 'File for the first token of a new store (mode 0600), instead of stdout.',
    default: '(off)',
  }),
  basePath: setting('BASE_PATH path', readBasePath, {
    description: 'Path below which the API is served, such as /store/v1.',
    default: '/',
  }),
  adminHost: setting('ADMIN_HOST address', String, {
    description: 'Address of the admin server.',
    default: '127.0.0.1',
  }),
  adminPort: setting('ADMIN_PORT port', optional(readPort), {
    description: 'Port of the admin server: /livez, /readyz, /metrics.',
    default: '(off)',
  }),
  logLevel: setting('LOG_LEVEL level', choose('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'), {
    description: 'Least severe level that is logged; access lines are info.',
    default: 'info',
  }),
  logFormat: setting('LOG_FORMAT format', choose('auto', 'json', 'text'), {
    description: 'json for machines, text for people; auto: text on a terminal.',
    default: 'auto',
  }),
  logTime: setting('LOG_TIME form', choose('epoch', 'iso'), {
    description: 'Times in JSON lines. epoch: milliseconds since 1970; iso: RFC 3339, UTC.',
    default: 'epoch',
  }),
  trustProxy: setting('TRUST_PROXY proxies', readTrustProxy, {
    description:
      'Proxies whose X-Forwarded-For is trusted: true, or addresses and subnets, separated by commas.',
    default: '(off)',
  }),
  corsOrigin: setting('CORS_ORIGIN origins', readCorsOrigin, {
    description: 'Origins whose pages may call the API: true, *, or origins, separated by commas.',
    default: '(off)',
  }),
  rateLimit: setting('RATE_LIMIT rate', readRate, {
    description: 'Requests per token, such as 100/s, 600/m or 5000/h; beyond it 429.',
    default: 'off',
  }),
  authFailureLimit: setting('AUTH_FAILURE_LIMIT rate', readRate, {
    description: 'Failed authentications per client address; beyond it 429, never for a valid token.',
    default: '100/s',
  }),
  maxConnections: setting('MAX_CONNECTIONS count', optional(readCount), {
    description:
      'Open connections; beyond it the address with most gives one up, or else the new one gets 503.',
    default: '(a little less than half of the file descriptors that the process may open)',
  }),
  keepAliveMs: setting('KEEP_ALIVE seconds', readSeconds, {
    description:
      'Time that an idle connection stays open; make it longer than the idle time-out of a load balancer.',
    default: '72',
  }),
  drainDelayMs: setting('DRAIN_DELAY seconds', readSeconds, {
    description:
      'How long, after SIGTERM, /readyz says 503 before the port closes; 5 behind a load balancer.',
    default: '0',
  }),
  ...traceSettings,
}

export type SettingName = keyof typeof settings

/** The texts of flags, by setting. */
export type Flags = { [K in SettingName]?: string | undefined }

/** Entries of the table, in its order. */
export const settingEntries = Object.entries(settings) as [SettingName, Setting<unknown>][]
