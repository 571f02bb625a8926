// The environment: what it sets, and what it may not say.
import { test } from 'tap'
import { readConfig } from '../../src/config/load-config.ts'
import { ConfigError } from '../../src/config/values.ts'
import { runCommand } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { request, spawnCli, startService } from '../support/service.ts'

const defaults = {
  host: '127.0.0.1',
  port: 3000,
  threads: 1,
  databaseUrl: 'file:data/plants.db',
  accessTokens: [],
  oidcIssuer: undefined,
  oidcAudience: [],
  oidcJwksUrl: undefined,
  oidcTokenType: 'at+jwt',
  oidcScopeClaim: ['scope', 'scp', 'permissions'],
  oidcScopePrefix: '',
  basePath: '/',
  adminHost: '127.0.0.1',
  adminPort: undefined,
  logLevel: 'info',
  trustProxy: false,
  corsOrigin: false,
  firstTokenFile: undefined,
  logFormat: 'auto',
  logTime: 'epoch',
  rateLimit: undefined,
  authFailureLimit: { count: 100, perMs: 1000 },
  maxConnections: undefined,
  keepAliveMs: 72_000,
  drainDelayMs: 0,
  otlpEndpoint: undefined,
  otlpEndpointOfTraces: undefined,
  otlpHeaders: undefined,
  otlpHeadersOfTraces: undefined,
  otlpTimeout: 10_000,
  otlpTimeoutOfTraces: undefined,
  otlpCompression: 'none',
  otlpCompressionOfTraces: undefined,
  otlpCa: undefined,
  otlpCaOfTraces: undefined,
  otlpProtocol: 'http/protobuf',
  otlpProtocolOfTraces: undefined,
  otelDisabled: false,
  tracesExporter: 'otlp',
  serviceName: '',
  resource: {},
  traceSampler: 'parentbased_always_on',
  traceRatio: 1,
  spanDelayMs: 5000,
  spanExportMs: 30_000,
  maxSpans: 2048,
  spanBatch: undefined,
}

test('nothing has to be set, and an empty value counts as none', async (t) => {
  t.same(readConfig({}), defaults)
  const names = [
    'HOST',
    'PORT',
    'DATABASE_URL',
    'ACCESS_TOKENS',
    'BASE_PATH',
    'ADMIN_HOST',
    'ADMIN_PORT',
    'LOG_LEVEL',
  ]
  const empty = [...names, 'TRUST_PROXY', 'CORS_ORIGIN'].map((name) => [name, ''])
  t.same(readConfig(Object.fromEntries(empty)), defaults)
})

test('values are read as they are meant', async (t) => {
  const values: [env: NodeJS.ProcessEnv, config: object][] = [
    [
      { HOST: '::1', PORT: '0' },
      { host: '::1', port: 0 },
    ],
    [
      { ADMIN_HOST: '0.0.0.0', ADMIN_PORT: '65535' },
      { adminHost: '0.0.0.0', adminPort: 65_535 },
    ],
    [{ DATABASE_URL: 'postgres://a:b@c,d:5433/e' }, { databaseUrl: 'postgres://a:b@c,d:5433/e' }],
    [{ DATABASE_URL: 'postgresql://a/b' }, { databaseUrl: 'postgresql://a/b' }],
    [{ ACCESS_TOKENS: ' a , b c,,' }, { accessTokens: ['a', 'b c'] }],
    [{ BASE_PATH: '/store/v1' }, { basePath: '/store/v1/' }],
    [{ BASE_PATH: '/store/v1/' }, { basePath: '/store/v1/' }],
    [{ LOG_LEVEL: 'silent' }, { logLevel: 'silent' }],
    [{ TRUST_PROXY: 'true' }, { trustProxy: true }],
    [{ TRUST_PROXY: 'off' }, { trustProxy: false }],
    [{ TRUST_PROXY: 'loopback, 10.0.0.0/8,fc00::/7,' }, { trustProxy: 'loopback,10.0.0.0/8,fc00::/7' }],
    [{ TRUST_PROXY: '10.0.0.0/255.0.0.0' }, { trustProxy: '10.0.0.0/255.0.0.0' }],
    [{ RATE_LIMIT: '600/m' }, { rateLimit: { count: 600, perMs: 60_000 } }],
    [{ AUTH_FAILURE_LIMIT: 'off' }, { authFailureLimit: undefined }],
    [{ MAX_CONNECTIONS: '20' }, { maxConnections: 20 }],
    [
      { DRAIN_DELAY: '1.5', KEEP_ALIVE: '0' },
      { drainDelayMs: 1500, keepAliveMs: 0 },
    ],
    [{ FIRST_TOKEN_FILE: 'a' }, { firstTokenFile: 'a' }],
    [
      { LOG_FORMAT: 'text', LOG_TIME: 'iso' },
      { logFormat: 'text', logTime: 'iso' },
    ],
    [{ CORS_ORIGIN: 'on' }, { corsOrigin: true }],
    [{ CORS_ORIGIN: '*' }, { corsOrigin: '*' }],
    [{ CORS_ORIGIN: 'https://a.test' }, { corsOrigin: 'https://a.test' }],
    [{ CORS_ORIGIN: 'https://a.test, app://b' }, { corsOrigin: ['https://a.test', 'app://b'] }],
    [{ CORS_ORIGIN: 'HTTPS://A.Example:443' }, { corsOrigin: 'https://a.example' }],
    [{ CORS_ORIGIN: 'http://b.test:80,null' }, { corsOrigin: ['http://b.test', 'null'] }],
    [{ CORS_ORIGIN: 'https://gärten.test:8443' }, { corsOrigin: 'https://xn--grten-gra.test:8443' }],
  ]
  for (const [env, config] of values) t.same(readConfig(env), { ...defaults, ...config })
})

const bad: Record<string, string[]> = {
  PORT: ['x', '-1', '65536', '80.5', '0x50', ' 80'],
  ADMIN_PORT: ['x', '65536'],
  DATABASE_URL: [
    'plants.db',
    'file:',
    'mysql://a/b',
    'postgres://',
    'file:%zz',
    'file:%ff',
    'FILE:a',
    'postgres://a:b/c@d/e',
    'postgres://a:b#c@d/e',
    'postgres://a:x/b',
  ],
  BASE_PATH: ['store', 'store/', '//', '/a//b', '/a b', '/..', '/a/../b', '/a?b', '/:a', '/*'],
  LOG_LEVEL: ['loud', 'INFO', '30'],
  LOG_FORMAT: ['xml'],
  LOG_TIME: ['utc'],
  RATE_LIMIT: ['100', '0/s', '-1/s', '1.5/s', '100/d', '100/s ', '99999999/s', 'true'],
  AUTH_FAILURE_LIMIT: ['many'],
  MAX_CONNECTIONS: ['0', '-1', '1e3', 'all'],
  KEEP_ALIVE: ['-1', '72s', '3601'],
  DRAIN_DELAY: ['-1', '.5', '1e1', '3601'],
  ACCESS_TOKENS: [' , ', ','],
  OIDC_ISSUER: [
    'issuer.example',
    'http://issuer.example',
    'http://127.0.0.1.example',
    'https:issuer.example',
    'https://a:b@issuer.example',
    'https://issuer.example/?a',
    'https://issuer.example/#a',
    ' https://issuer.example',
    'https://issuer.example/a b',
  ],
  OIDC_AUDIENCE: [','],
  OIDC_JWKS_URL: ['keys.json', 'http://issuer.example/keys', 'file:///keys'],
  OIDC_TOKEN_TYPE: ['jwt', 'id_token'],
  OIDC_SCOPE_CLAIM: [' , '],
  OIDC_SCOPE_PREFIX: ['a b', '"', '\\', 'ä'],
  TRUST_PROXY: [
    'yes',
    'proxy.test',
    '10.0.0.0/33',
    '10.0.0.0/0',
    '10.0.0.0/8/8',
    'fc00::/129',
    '10.0.0.1,x',
    ' ',
    ',',
    '10.0.0.0/0x8',
    '10.0.0.0/8.5',
    '10.0.0.0/255.0.255.0',
    '::1/255.0.0.0',
  ],
  CORS_ORIGIN: [
    ',',
    '*,https://a.test',
    'a.test',
    'https://a.test/',
    'https://a.test/path',
    'https://a.test?a',
    'https://a:b@a.test',
    'https://a.test:99999',
    'https://a.test,b',
  ],
}

test('a bad value is reported in one line that names it', async (t) => {
  for (const [name, values] of Object.entries(bad))
    for (const value of values) {
      const read = () => readConfig({ [name]: value })
      t.throws(
        read,
        { constructor: ConfigError, message: new RegExp(`^${name} must [^\\n]+$`) },
        `${name}=${value}`,
      )
    }
})

test('an issuer needs an audience, and its settings need an issuer', async (t) => {
  const OIDC_ISSUER = 'https://issuer.example'
  for (const [env, message] of [
    [{ OIDC_ISSUER }, /^OIDC_ISSUER needs OIDC_AUDIENCE/],
    [{ OIDC_AUDIENCE: 'plants' }, /^OIDC_AUDIENCE has no effect without OIDC_ISSUER$/],
    [{ OIDC_SCOPE_PREFIX: 'a:' }, /^OIDC_SCOPE_PREFIX has no effect without OIDC_ISSUER$/],
  ] as const)
    t.throws(() => readConfig(env), { constructor: ConfigError, message })
  const read = readConfig({
    OIDC_ISSUER: `${OIDC_ISSUER}/`,
    OIDC_AUDIENCE: 'plants, https://plants.example',
    OIDC_JWKS_URL: 'https://keys.example/keys?appid=1',
    OIDC_SCOPE_CLAIM: 'roles,https://plants.example/roles',
  })
  t.match(read, {
    oidcIssuer: `${OIDC_ISSUER}/`,
    oidcAudience: ['plants', 'https://plants.example'],
    oidcJwksUrl: 'https://keys.example/keys?appid=1',
    oidcScopeClaim: ['roles', 'https://plants.example/roles'],
  })
})

test('the command line prints that line and exits with 1', async (t) => {
  const directory = createDirectory(t)
  const lines: [args: string[], env: NodeJS.ProcessEnv, name: string][] = [
    [['serve'], { PORT: 'x' }, 'PORT'],
    [['serve'], { TRUST_PROXY: 'yes' }, 'TRUST_PROXY'],
    [['token', 'list'], { DATABASE_URL: 'mysql://root:secret@a/b' }, 'DATABASE_URL'],
    [['openapi'], { BASE_PATH: 'v1' }, 'BASE_PATH'],
  ]
  for (const [args, env, name] of lines) {
    const { code, stdout, stderr } = await runCommand(args, env, directory)
    t.same({ code, stdout }, { code: 1, stdout: '' }, name)
    t.match(stderr, new RegExp(`^plant-store: ${name} must [^\\n]+\\n$`))
    t.notMatch(stderr, /secret/)
  }
})

test('an address that does not exist is reported in one line', async (t) => {
  const { ended, output } = spawnCli(t, ['serve'], { HOST: '192.0.2.1', PORT: '0' }, createDirectory(t))
  t.match(await ended, { code: 1 })
  t.match(output().stderr, /^plant-store: [^\n]*192\.0\.2\.1[^\n]*\n$/)
})

test('HOST, IPv6 and a base path are in the lines of the start', async (t) => {
  const env = { HOST: '::1', BASE_PATH: '/v1', ACCESS_TOKENS: '', ADMIN_PORT: '0', ADMIN_HOST: '::1' }
  const service = await startService(t, env, createDirectory(t))
  t.match(service.url, /^http:\/\/\[::1\]:\d+$/)
  t.match(service.output().stdout, `${service.url}/v1/plants\n`)
  t.equal((await request(`${service.url}/v1/plants`)).status, 401)
  service.child.kill('SIGTERM')
  t.match(await service.ended, { code: 0 })
  t.match(service.output().stdout, /\nadmin on http:\/\/\[::1\]:\d+\n/)
})

test('the ready line names the host that was asked for, the printed curl line one that can be reached', async (t) => {
  for (const [HOST, shown, reached] of [
    ['0.0.0.0', '0.0.0.0', '127.0.0.1'],
    ['::', '[::]', '[::1]'],
    ['localhost', 'localhost', '127.0.0.1'],
  ] as const) {
    const service = await startService(t, { HOST, ACCESS_TOKENS: '' }, createDirectory(t))
    t.equal(new URL(service.url).hostname, shown)
    const [, printed = '', url = ''] = /Bearer (\S+)' (\S+)/.exec(service.output().stdout) ?? []
    if (HOST !== 'localhost') t.equal(new URL(url).hostname, reached)
    t.equal((await request(url, { headers: { authorization: `Bearer ${printed}` } })).text, '[]')
    service.child.kill('SIGTERM')
    t.match(await service.ended, { code: 0 })
  }
})
