// Every setting, once: environment variables, flags of `serve`, help, docs and `plant-store config` are made from this.
import { issuerSettings } from './issuer-settings.ts'
import { maskUrl } from './mask.ts'
import { type Setting, setting } from './setting.ts'
import { traceSettings } from './trace-settings.ts'
import {
  choose,
  readBasePath,
  readCorsOrigin,
  readCount,
  readDatabaseUrl,
  readPort,
  readRate,
  readSeconds,
  readThreads,
  readTokens,
  readTrustProxy,
} from './values.ts'

export const settings = {
  host: setting({
    name: 'HOST',
    value: 'address',
    about: 'Address to listen on; 0.0.0.0 or :: for all of them.',
    initial: '127.0.0.1',
    read: String,
  }),
  port: setting({
    name: 'PORT',
    value: 'port',
    about: 'Port to listen on; 0 picks a free one.',
    initial: '3000',
    read: readPort,
  }),
  threads: setting({
    name: 'THREADS',
    value: 'count',
    about: 'Threads that serve requests, in one process; auto: one for each core.',
    initial: '1',
    read: readThreads,
  }),
  databaseUrl: setting({
    name: 'DATABASE_URL',
    value: 'url',
    about:
      'file:PATH for SQLite, postgres://USER:PASSWORD@HOST/DATABASE for PostgreSQL; HOST:5432,HOST:5432 for several servers.',
    initial: 'file:data/plants.db',
    read: readDatabaseUrl,
    mask: maskUrl,
  }),
  accessTokens: setting({
    name: 'ACCESS_TOKENS',
    value: 'tokens',
    about: 'Tokens of your own with all scopes, separated by commas, of at least 16 characters each.',
    initial: '',
    otherwise: 'none',
    read: readTokens,
    mask: (text) => text.replaceAll(/[^,\s]+/g, '***'),
  }),
  ...issuerSettings,
  firstTokenFile: setting({
    name: 'FIRST_TOKEN_FILE',
    value: 'file',
    about: 'Where the first token of a new store is written (mode 0600), instead of standard output.',
    initial: '',
    otherwise: 'off',
    read: (text) => text || undefined,
  }),
  basePath: setting({
    name: 'BASE_PATH',
    value: 'path',
    about: 'Path below which the API is served, like /store/v1.',
    initial: '/',
    read: readBasePath,
  }),
  adminHost: setting({
    name: 'ADMIN_HOST',
    value: 'address',
    about: 'Address of the admin server.',
    initial: '127.0.0.1',
    read: String,
  }),
  adminPort: setting({
    name: 'ADMIN_PORT',
    value: 'port',
    about: 'Port of the admin server: /livez, /readyz, /metrics.',
    initial: '',
    otherwise: 'off',
    read: (text, name) => (text ? readPort(text, name) : undefined),
  }),
  logLevel: setting({
    name: 'LOG_LEVEL',
    value: 'level',
    about: 'How much is logged; access lines are info.',
    initial: 'info',
    read: choose('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
  }),
  logFormat: setting({
    name: 'LOG_FORMAT',
    value: 'format',
    about: 'text is to be read by people; auto: text on a terminal.',
    initial: 'auto',
    read: choose('auto', 'json', 'text'),
  }),
  logTime: setting({
    name: 'LOG_TIME',
    value: 'form',
    about: 'Of JSON lines. epoch: milliseconds since 1970; iso: RFC 3339, UTC.',
    initial: 'epoch',
    read: choose('epoch', 'iso'),
  }),
  trustProxy: setting({
    name: 'TRUST_PROXY',
    value: 'proxies',
    about: 'Whose X-Forwarded-For counts: true, or addresses and subnets, separated by commas.',
    initial: '',
    otherwise: 'off',
    read: readTrustProxy,
  }),
  corsOrigin: setting({
    name: 'CORS_ORIGIN',
    value: 'origins',
    about: 'Pages of which origins may call: true, *, or origins, separated by commas.',
    initial: '',
    otherwise: 'off',
    read: readCorsOrigin,
  }),
  rateLimit: setting({
    name: 'RATE_LIMIT',
    value: 'rate',
    about: 'Requests for each token, like 100/s, 600/m or 5000/h; past it 429.',
    initial: 'off',
    read: readRate,
  }),
  authFailureLimit: setting({
    name: 'AUTH_FAILURE_LIMIT',
    value: 'rate',
    about: 'Failed authentications for each client address; past it 429, never for a good token.',
    initial: '100/s',
    read: readRate,
  }),
  maxConnections: setting({
    name: 'MAX_CONNECTIONS',
    value: 'count',
    about: 'Open connections; past it 503 and close.',
    initial: '',
    otherwise: 'a little less than half of the file descriptors that the process may open',
    read: readCount,
  }),
  keepAliveMs: setting({
    name: 'KEEP_ALIVE',
    value: 'seconds',
    about: 'How long an idle connection stays open; longer than the idle time-out of a load balancer.',
    initial: '72',
    read: readSeconds,
  }),
  drainDelayMs: setting({
    name: 'DRAIN_DELAY',
    value: 'seconds',
    about: 'How long, after SIGTERM, /readyz says 503 before the port closes; 5 behind a load balancer.',
    initial: '0',
    read: readSeconds,
  }),
  ...traceSettings,
}

export type SettingName = keyof typeof settings

/** The texts of flags, by the names of their settings. */
export type Flags = Partial<Record<SettingName, string>>

/** Entries of the table, in its order. */
export const settingEntries = Object.entries(settings) as [SettingName, Setting<unknown>][]

/** PORT -> --port */
export function flagOf({ name }: Setting<unknown>): string {
  return `--${name.toLowerCase().replaceAll('_', '-')}`
}
