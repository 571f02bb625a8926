// Every setting, once: environment variables, flags of `serve`, help, docs and `plant-store config` are made from this.
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
  host: setting('HOST address', 'Address to listen on; 0.0.0.0 or :: for all of them.', '127.0.0.1', String),
  port: setting('PORT port', 'Port to listen on; 0 picks a free one.', '3000', readPort),
  threads: setting(
    'THREADS count',
    'Threads that serve requests, in one process; auto: one per core.',
    '1',
    readThreads,
  ),
  databaseUrl: setting(
    'DATABASE_URL url',
    'file:PATH for SQLite, postgres://USER:PASSWORD@HOST/DATABASE for PostgreSQL; HOST:5432,HOST:5432 for several servers.',
    'file:data/plants.db',
    readDatabaseUrl,
    maskUrl,
  ),
  accessTokens: setting(
    'ACCESS_TOKENS tokens',
    'Your own tokens, with all scopes, separated by commas; make them at least 16 characters long.',
    '(none)',
    listOf('a token'),
    (text) => text.replaceAll(/[^,\s]+/g, '***'),
  ),
  oidcIssuer: setting(
    'OIDC_ISSUER url',
    'Issuer whose JWTs are accepted as well: an https URL, exactly as in iss. Needs OIDC_AUDIENCE.',
    '(off)',
    optional(readIssuer),
  ),
  oidcAudience: setting(
    'OIDC_AUDIENCE names',
    'Audiences, separated by commas; the aud of a JWT must contain one of them.',
    '(off)',
    listOf('a name'),
  ),
  oidcJwksUrl: setting(
    'OIDC_JWKS_URL url',
    'URL of the keys of the issuer, if it has no discovery document.',
    '(as the issuer says)',
    optional(readSecureUrl),
  ),
  oidcTokenType: setting(
    'OIDC_TOKEN_TYPE type',
    'Type (typ) of the JWTs. at+jwt: RFC 9068; JWT also accepts at+jwt and no typ.',
    'at+jwt',
    choose('at+jwt', 'JWT'),
  ),
  oidcScopeClaim: setting(
    'OIDC_SCOPE_CLAIM names',
    'Claims that hold the scopes of a JWT, separated by commas.',
    'scope,scp,permissions',
    listOf('a name'),
  ),
  oidcScopePrefix: setting(
    'OIDC_SCOPE_PREFIX text',
    'Prefix of plants:read and plants:write in those scopes.',
    '(none)',
    readScopePrefix,
  ),
  firstTokenFile: setting(
    'FIRST_TOKEN_FILE file',
    'File for the first token of a new store (mode 0600), instead of stdout.',
    '(off)',
    optional(String),
  ),
  basePath: setting(
    'BASE_PATH path',
    'Path below which the API is served, such as /store/v1.',
    '/',
    readBasePath,
  ),
  adminHost: setting('ADMIN_HOST address', 'Address of the admin server.', '127.0.0.1', String),
  adminPort: setting(
    'ADMIN_PORT port',
    'Port of the admin server: /livez, /readyz, /metrics.',
    '(off)',
    optional(readPort),
  ),
  logLevel: setting(
    'LOG_LEVEL level',
    'Least severe level that is logged; access lines are info.',
    'info',
    choose('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
  ),
  logFormat: setting(
    'LOG_FORMAT format',
    'json for machines, text for people; auto: text on a terminal.',
    'auto',
    choose('auto', 'json', 'text'),
  ),
  logTime: setting(
    'LOG_TIME form',
    'Times in JSON lines. epoch: milliseconds since 1970; iso: RFC 3339, UTC.',
    'epoch',
    choose('epoch', 'iso'),
  ),
  trustProxy: setting(
    'TRUST_PROXY proxies',
    'Proxies whose X-Forwarded-For is trusted: true, or addresses and subnets, separated by commas.',
    '(off)',
    readTrustProxy,
  ),
  corsOrigin: setting(
    'CORS_ORIGIN origins',
    'Origins whose pages may call the API: true, *, or origins, separated by commas.',
    '(off)',
    readCorsOrigin,
  ),
  rateLimit: setting(
    'RATE_LIMIT rate',
    'Requests per token, such as 100/s, 600/m or 5000/h; beyond it 429.',
    'off',
    readRate,
  ),
  authFailureLimit: setting(
    'AUTH_FAILURE_LIMIT rate',
    'Failed authentications per client address; beyond it 429, never for a valid token.',
    '100/s',
    readRate,
  ),
  maxConnections: setting(
    'MAX_CONNECTIONS count',
    'Open connections; beyond it the longest idle one is closed, or else the new one gets 503.',
    '(a little less than half of the file descriptors that the process may open)',
    optional(readCount),
  ),
  keepAliveMs: setting(
    'KEEP_ALIVE seconds',
    'Time that an idle connection stays open; make it longer than the idle time-out of a load balancer.',
    '72',
    readSeconds,
  ),
  drainDelayMs: setting(
    'DRAIN_DELAY seconds',
    'How long, after SIGTERM, /readyz says 503 before the port closes; 5 behind a load balancer.',
    '0',
    readSeconds,
  ),
  ...traceSettings,
}

export type SettingName = keyof typeof settings

/** The texts of flags, by setting. */
export type Flags = { [K in SettingName]?: string | undefined }

/** Entries of the table, in its order. */
export const settingEntries = Object.entries(settings) as [SettingName, Setting<unknown>][]
