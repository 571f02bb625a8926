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
    description: 'Address to listen on; 0.0.0.0 or :: for all of them.',
    default: '127.0.0.1',
    read: String,
  }),
  port: setting({
    name: 'PORT',
    value: 'port',
    description: 'Port to listen on; 0 picks a free one.',
    default: '3000',
    read: readPort,
  }),
  threads: setting({
    name: 'THREADS',
    value: 'count',
    description: 'Threads that serve requests, in one process; auto: one for each core.',
    default: '1',
    read: readThreads,
  }),
  databaseUrl: setting({
    name: 'DATABASE_URL',
    value: 'url',
    description:
      'file:PATH for SQLite, postgres://USER:PASSWORD@HOST/DATABASE for PostgreSQL; HOST:5432,HOST:5432 for several servers.',
    default: 'file:data/plants.db',
    read: readDatabaseUrl,
    mask: maskUrl,
  }),
  accessTokens: setting({
    name: 'ACCESS_TOKENS',
    value: 'tokens',
    description: 'Tokens of your own with all scopes, separated by commas, of at least 16 characters each.',
    default: '',
    defaultLabel: 'none',
    read: readTokens,
    mask: (text) => text.replaceAll(/[^,\s]+/g, '***'),
  }),
  ...issuerSettings,
  firstTokenFile: setting({
    name: 'FIRST_TOKEN_FILE',
    value: 'file',
    description: 'Where the first token of a new store is written (mode 0600), instead of standard output.',
    default: '',
    defaultLabel: 'off',
    read: (text) => text || undefined,
  }),
  basePath: setting({
    name: 'BASE_PATH',
    value: 'path',
    description: 'Path below which the API is served, like /store/v1.',
    default: '/',
    read: readBasePath,
  }),
  adminHost: setting({
    name: 'ADMIN_HOST',
    value: 'address',
    description: 'Address of the admin server.',
    default: '127.0.0.1',
    read: String,
  }),
  adminPort: setting({
    name: 'ADMIN_PORT',
    value: 'port',
    description: 'Port of the admin server: /livez, /readyz, /metrics.',
    default: '',
    defaultLabel: 'off',
    read: (text, name) => (text ? readPort(text, name) : undefined),
  }),
  logLevel: setting({
    name: 'LOG_LEVEL',
    value: 'level',
    description: 'How much is logged; access lines are info.',
    default: 'info',
    read: choose('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
  }),
  logFormat: setting({
    name: 'LOG_FORMAT',
    value: 'format',
    description: 'text is to be read by people; auto: text on a terminal.',
    default: 'auto',
    read: choose('auto', 'json', 'text'),
  }),
  logTime: setting({
    name: 'LOG_TIME',
    value: 'form',
    description: 'Of JSON lines. epoch: milliseconds since 1970; iso: RFC 3339, UTC.',
    default: 'epoch',
    read: choose('epoch', 'iso'),
  }),
  trustProxy: setting({
    name: 'TRUST_PROXY',
    value: 'proxies',
    description: 'Whose X-Forwarded-For counts: true, or addresses and subnets, separated by commas.',
    default: '',
    defaultLabel: 'off',
    read: readTrustProxy,
  }),
  corsOrigin: setting({
    name: 'CORS_ORIGIN',
    value: 'origins',
    description: 'Pages of which origins may call: true, *, or origins, separated by commas.',
    default: '',
    defaultLabel: 'off',
    read: readCorsOrigin,
  }),
  rateLimit: setting({
    name: 'RATE_LIMIT',
    value: 'rate',
    description: 'Requests for each token, like 100/s, 600/m or 5000/h; past it 429.',
    default: 'off',
    read: readRate,
  }),
  authFailureLimit: setting({
    name: 'AUTH_FAILURE_LIMIT',
    value: 'rate',
    description: 'Failed authentications for each client address; past it 429, never for a good token.',
    default: '100/s',
    read: readRate,
  }),
  maxConnections: setting({
    name: 'MAX_CONNECTIONS',
    value: 'count',
    description: 'Open connections; past it 503 and close.',
    default: '',
    defaultLabel: 'a little less than half of the file descriptors that the process may open',
    read: readCount,
  }),
  keepAliveMs: setting({
    name: 'KEEP_ALIVE',
    value: 'seconds',
    description: 'How long an idle connection stays open; longer than the idle time-out of a load balancer.',
    default: '72',
    read: readSeconds,
  }),
  drainDelayMs: setting({
    name: 'DRAIN_DELAY',
    value: 'seconds',
    description:
      'How long, after SIGTERM, /readyz says 503 before the port closes; 5 behind a load balancer.',
    default: '0',
    read: readSeconds,
  }),
  ...traceSettings,
}

export type SettingName = keyof typeof settings

/** The texts of flags, by setting. */
export type Flags = Partial<Record<SettingName, string>>

/** Entries of the table, in its order. */
export const settingEntries = Object.entries(settings) as [SettingName, Setting<unknown>][]

/** The flag of a setting: PORT -> --port. */
export function flagOf({ name }: Setting<unknown>): string {
  return `--${name.toLowerCase().replaceAll('_', '-')}`
}
