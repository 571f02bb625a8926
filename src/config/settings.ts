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
    description: 'Threads that serve requests, in one process; auto: one per core.',
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
    description:
      'Your own tokens, with all scopes, separated by commas; make them at least 16 characters long.',
    default: '',
    defaultLabel: 'none',
    read: readTokens,
    mask: (text) => text.replaceAll(/[^,\s]+/g, '***'),
  }),
  ...issuerSettings,
  firstTokenFile: setting({
    name: 'FIRST_TOKEN_FILE',
    value: 'file',
    description: 'File for the first token of a new store (mode 0600), instead of stdout.',
    default: '',
    defaultLabel: 'off',
    read: (text) => text || undefined,
  }),
  basePath: setting({
    name: 'BASE_PATH',
    value: 'path',
    description: 'Path below which the API is served, such as /store/v1.',
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
    description: 'Least severe level that is logged; access lines are info.',
    default: 'info',
    read: choose('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
  }),
  logFormat: setting({
    name: 'LOG_FORMAT',
    value: 'format',
    description: 'json for machines, text for people; auto: text on a terminal.',
    default: 'auto',
    read: choose('auto', 'json', 'text'),
  }),
  logTime: setting({
    name: 'LOG_TIME',
    value: 'form',
    description: 'Times in JSON lines. epoch: milliseconds since 1970; iso: RFC 3339, UTC.',
    default: 'epoch',
    read: choose('epoch', 'iso'),
  }),
  trustProxy: setting({
    name: 'TRUST_PROXY',
    value: 'proxies',
    description:
      'Proxies whose X-Forwarded-For is trusted: true, or addresses and subnets, separated by commas.',
    default: '',
    defaultLabel: 'off',
    read: readTrustProxy,
  }),
  corsOrigin: setting({
    name: 'CORS_ORIGIN',
    value: 'origins',
    description: 'Origins whose pages may call the API: true, *, or origins, separated by commas.',
    default: '',
    defaultLabel: 'off',
    read: readCorsOrigin,
  }),
  rateLimit: setting({
    name: 'RATE_LIMIT',
    value: 'rate',
    description: 'Requests per token, such as 100/s, 600/m or 5000/h; beyond it 429.',
    default: 'off',
    read: readRate,
  }),
  authFailureLimit: setting({
    name: 'AUTH_FAILURE_LIMIT',
    value: 'rate',
    description: 'Failed authentications per client address; beyond it 429, never for a valid token.',
    default: '100/s',
    read: readRate,
  }),
  maxConnections: setting({
    name: 'MAX_CONNECTIONS',
    value: 'count',
    description: 'Open connections; beyond it the longest idle one is closed, or else the new one gets 503.',
    default: '',
    defaultLabel: 'a little less than half of the file descriptors that the process may open',
    read: readCount,
  }),
  keepAliveMs: setting({
    name: 'KEEP_ALIVE',
    value: 'seconds',
    description:
      'Time that an idle connection stays open; make it longer than the idle time-out of a load balancer.',
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
