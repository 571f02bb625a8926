// Settings: their values and sources, and the messages about invalid ones.
import dns from 'node:dns'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import fastify from 'fastify'
import { test } from 'tap'
import { listen } from '../../src/listen.ts'
import { maskUrl } from '../../src/mask.ts'
import { SettingError } from '../../src/setting-values.ts'
import { loadSettings, settingRows } from '../../src/settings.ts'
import { runCommand } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { token } from '../support/service.ts'
import { listen as occupy } from '../support/wire.ts'

/** Reads settings from an environment; the working directory of the tests has no `.env`. */
const read = (env: NodeJS.ProcessEnv) => loadSettings({}, env).settings

const defaults = read({})

test('every setting has a default, and an empty value counts as none', async (t) => {
  t.match(defaults, { port: 3000, accessTokens: [], trustProxy: false, keepAliveMs: 72_000 })
  t.strictSame(read(Object.fromEntries(settingRows.map(({ name }) => [name, ' ']))), defaults)
  t.ok(settingRows.length <= 30)
})

const issuer = { OIDC_ISSUER: 'http://localhost/', OIDC_AUDIENCE: 'plants, https://plants.example' }
const oidc = { oidcIssuer: 'http://localhost/', oidcAudience: ['plants', 'https://plants.example'] }

const good: [env: NodeJS.ProcessEnv, settings: object][] = [
  [{ HOST: '::1' }, { host: '::1' }],
  [{ HOST: 'fe80::1%eth0' }, { host: 'fe80::1%eth0' }],
  [{ PORT: ' 0\n' }, { port: 0 }],
  [{ HOST: 'gärten.test' }, { host: 'gärten.test' }],
  [
    { ADMIN_HOST: '0.0.0.0', ADMIN_PORT: '65535' },
    { adminHost: '0.0.0.0', adminPort: 65_535 },
  ],
  [{ DATABASE_URL: 'postgres://a:b@c,d:5433/e' }, { databaseUrl: 'postgres://a:b@c,d:5433/e' }],
  [{ DATABASE_URL: 'file:plants.db\n' }, { databaseUrl: 'file:plants.db' }],
  [{ DATABASE_URL: 'file:a~/b~' }, { databaseUrl: 'file:a~/b~' }],
  [{ ACCESS_TOKENS: ' a , b c,,\n' }, { accessTokens: ['a', 'b c'] }],
  [{ ACCESS_TOKENS: `o'neill's"x` }, { accessTokens: [`o'neill's"x`] }],
  [{ BASE_PATH: '/store/v1' }, { basePath: '/store/v1/' }],
  [{ LOG_LEVEL: 'silent' }, { logLevel: 'silent' }],
  [{ LOG_FORMAT: 'text' }, { logFormat: 'text' }],
  [{ TRUST_PROXY: 'true' }, { trustProxy: true }],
  [{ TRUST_PROXY: 'off', CORS_ORIGIN: 'false' }, {}],
  [{ TRUST_PROXY: 'loopback, 10.0.0.0/8,fc00::/7,' }, { trustProxy: 'loopback,10.0.0.0/8,fc00::/7' }],
  [{ CORS_ORIGIN: 'on' }, { corsOrigin: true }],
  [{ CORS_ORIGIN: 'HTTPS://A.Example:443' }, { corsOrigin: 'https://a.example' }],
  [{ CORS_ORIGIN: 'http://b.test:80,null, app://c' }, { corsOrigin: ['http://b.test', 'null', 'app://c'] }],
  [{ RATE_LIMIT: '600/m' }, { rateLimit: { count: 600, perMs: 60_000 } }],
  [{ RATE_LIMIT: 'off', ADMIN_PORT: 'off' }, {}],
  [{ MAX_CONNECTIONS: '20' }, { maxConnections: 20 }],
  [{ DRAIN_DELAY: '1.5' }, { drainDelayMs: 1500 }],
  [{ KEEP_ALIVE: '0' }, { keepAliveMs: 0 }],
  [
    { ...issuer, OIDC_SCOPE_CLAIM: 'roles,https://a/roles', OIDC_JWKS_URL: 'http://[::1]/k?a=1' },
    { ...oidc, oidcScopeClaim: ['roles', 'https://a/roles'], oidcJwksUrl: 'http://[::1]/k?a=1' },
  ],
]

test('reads values without the white space around them', async (t) => {
  for (const [env, settings] of good)
    t.strictSame(read(env), { ...defaults, ...settings }, JSON.stringify(env))
})

test('ignores settings of a feature that is off', async (t) => {
  const env = {
    ADMIN_HOST: '[::1]',
    OIDC_AUDIENCE: ',',
    OIDC_JWKS_URL: 'keys.json',
    OIDC_TOKEN_TYPE: '"jwt"',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_HEADERS: '"a=b"',
  }
  t.strictSame(read(env), defaults)
  for (const part of [{ ADMIN_PORT: '0' }, issuer, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }])
    t.throws(() => read({ ...env, ...part }), { message: / must / })
})

const bad: Record<string, (string | [value: string, message: string])[]> = {
  HOST: ['[::1]', 'http://a', 'a b'],
  PORT: ['x', '-1', '65536', '80.5', '0x50', '1e3'],
  ADMIN_PORT: ['x', '65536'],
  DATABASE_URL: [
    ...['plants.db', 'file:', 'mysql://a/b', 'postgres://', 'FILE:a', 'file:file:a', 'file:a\nfile:b'],
    ['file:~/plants.db', 'DATABASE_URL has a ~, which is not expanded: use an absolute path'],
  ],
  FIRST_TOKEN_FILE: [['~/a', 'FIRST_TOKEN_FILE has a ~, which is not expanded: use an absolute path']],
  BASE_PATH: ['store', 'store/', '//', '/a//b', '/a b', '/..', '/a/../b', '/a?b', '/:a', '/*'],
  LOG_LEVEL: ['loud', 'INFO', '30'],
  LOG_FORMAT: ['xml'],
  RATE_LIMIT: ['100', '0/s', '-1/s', '1.5/s', '100/d', '99999999/s', 'true'],
  MAX_CONNECTIONS: ['0', '-1', '1e3', 'all', '10000000'],
  KEEP_ALIVE: ['-1', '72s', '3601'],
  DRAIN_DELAY: ['.5', '1e1'],
  ACCESS_TOKENS: [
    ' , ',
    ['"a"', 'ACCESS_TOKENS is in quotation marks; remove them'],
    ['"a\nb"', 'ACCESS_TOKENS is in quotation marks; remove them'],
    ["'a','b'", 'ACCESS_TOKENS is in quotation marks; remove them'],
    ['a,"b"', 'ACCESS_TOKENS has an entry in quotation marks; remove them'],
    ["a\n'b'\nc", 'ACCESS_TOKENS has an entry in quotation marks; remove them'],
  ],
  OIDC_ISSUER: [
    ...['issuer.example', 'http://my-localhost', 'http://127.0.0.1.example', 'https:issuer.example'],
    ...['https://a:b@issuer.example', 'https://a/?a', 'https://a/#a', 'https://a/a b'],
  ],
  TRUST_PROXY: [
    ...['yes', 'proxy.test', '1', '10.0.0.0/33', '10.0.0.0/8/8', 'fc00::/129', '10.0.0.1,x', ','],
    ...['10.0.0.0/0x8', '10.0.0.0/255.0.255.0', '::1/255.0.0.0', '127.1', '010.0.0.1'],
  ],
  CORS_ORIGIN: [
    ...[',', '*', 'https://a.test,a.test', 'https://a.test:99999', 'https://a.test/', 'https://a:b@a.test'],
    ['https://a.test,https://*', 'CORS_ORIGIN must not have a wildcard: name each origin in full'],
  ],
  OTEL_EXPORTER_OTLP_ENDPOINT: ['127.0.0.1:4318', 'grpc://a'],
}

test('reports an invalid value in one line that names the setting and the expected form', async (t) => {
  for (const [name, values] of Object.entries(bad))
    for (const value of values) {
      const [given, message = ''] = [value].flat()
      const form = new RegExp(`^${name} (must|is|has|does) [^\\n]+$`)
      const expected = { constructor: SettingError, message: form }
      const error = t.throws(() => read({ [name]: given }), expected, `${name}=${given}`)
      t.ok(String((error as Error).message).startsWith(message), String(error))
    }
  t.throws(() => read({ OIDC_ISSUER: 'https://issuer.example' }), {
    message: /^OIDC_ISSUER requires OIDC_AUDIENCE/,
  })
  for (const OIDC_JWKS_URL of ['http://issuer.example/k', 'https://a:b@issuer.example/k'])
    t.throws(() => read({ ...issuer, OIDC_JWKS_URL }), { message: /^OIDC_JWKS_URL must be an https URL / })
})

/** What `plant-store config` shows, by the names of the settings. */
async function showConfig(args: string[], env: NodeJS.ProcessEnv, directory: string) {
  const { stdout } = await runCommand(['config', '--json', ...args], env, directory)
  if (stdout.includes('secret')) throw new Error(`a secret is shown: ${stdout}`)
  const rows = JSON.parse(stdout) as { name: string; value: string | null; from: string }[]
  return Object.fromEntries(rows.map(({ name, value, from }) => [name, `${value} (${from})`]))
}

test('prefers flags to the environment, and the environment to .env; reads secret files; masks secrets', async (t) => {
  const directory = createDirectory(t)
  const write = (name: string, text: string) => {
    writeFileSync(join(directory, name), text)
    return join(directory, name)
  }
  const url = write('url', 'postgres://plants:secret@127.0.0.1:1,b/plants?password=secret\r\n')
  // With the byte order mark and line ends of Windows editors.
  write(
    '.env',
    `\ufeffLOG_LEVEL=warn\r\nPORT=4001\r\nBASE_PATH="/of-file"\r\nHOST=::1\r\nRATE_LIMIT=5/s\r\nDATABASE_URL_FILE=${url}\r\n`,
  )
  const env = {
    PORT: '4002',
    BASE_PATH: '/of-environment',
    HOST: '',
    RATE_LIMIT: 'off',
    ACCESS_TOKENS_FILE: ` ${write('tokens', 'secret-1,\nsecret-2\n')}\n`,
  }
  t.match(await showConfig(['--port', '4003', '--log-level', ''], env, directory), {
    PORT: '4003 (flag)',
    BASE_PATH: '/of-environment (environment)',
    LOG_LEVEL: 'warn (.env)',
    HOST: '::1 (.env)',
    LOG_FORMAT: 'auto (default)',
    ADMIN_PORT: 'null (default)',
    RATE_LIMIT: 'null (environment)',
    ACCESS_TOKENS: '***,*** (ACCESS_TOKENS_FILE)',
    DATABASE_URL: 'postgres://plants:***@127.0.0.1:1,b/plants?password=*** (DATABASE_URL_FILE)',
  })
  const other = { ...env, DATABASE_URL: 'file:a' }
  t.match(await showConfig([], other, directory), { DATABASE_URL: 'file:a (environment)' })
  t.match(await showConfig(['--database-url', 'file:b'], other, directory), { DATABASE_URL: 'file:b (flag)' })
  for (const tokens of ['ab#rest', '#rest', 'ab, #rest']) {
    write(
      '.env',
      `# a#b\nFOREIGN=c#d\nHOST=::1 # c#d\nLOG_LEVEL='warn'#\nPORT= # e\nTRUST_PROXY=::1,\n#\nexport ACCESS_TOKENS=${tokens}\n`,
    )
    const cut = await runCommand(['config'], {}, directory)
    t.match(cut, { code: 1, stdout: '', stderr: /^[^\n]+ # starts a comment in ACCESS_TOKENS; [^\n]+\n$/ })
  }
  const table = await runCommand(['config'], {}, createDirectory(t))
  t.match(table.stdout, /^SETTING +VALUE +FROM\n/)
  t.match(table.stdout, /\nMAX_CONNECTIONS +\(45 % [^)]+\) +default\n/)
})

test('sets variables of OpenTelemetry from .env only with an endpoint', async (t) => {
  const cwd = process.cwd()
  process.chdir(t.testdir({ '.env': 'OTEL_SERVICE_NAME=of-file\nOTEL_BSP_SCHEDULE_DELAY=20\n' }))
  t.teardown(() => process.chdir(cwd))
  const off: NodeJS.ProcessEnv = {}
  loadSettings({}, off)
  t.same(off, {})
  const on: NodeJS.ProcessEnv = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:4318', OTEL_SERVICE_NAME: ' mine\n' }
  loadSettings({}, on)
  t.match(on, { OTEL_SERVICE_NAME: /^mine$/, OTEL_BSP_SCHEDULE_DELAY: '20' })
  t.notOk('OTEL_BSP_SCHEDULE_DELAY' in process.env)
})

test('a command names an invalid setting as the user wrote it, with exit code 1', async (t) => {
  const directory = createDirectory(t)
  writeFileSync(join(directory, 'empty'), '\n')
  writeFileSync(join(directory, 'url'), 'secret\n')
  writeFileSync(join(directory, 'latin1'), Buffer.from('grün\n', 'latin1'))
  const both = { DATABASE_URL: 'file:a', DATABASE_URL_FILE: 'url' }
  const cases: [args: string[], env: NodeJS.ProcessEnv, file: string, line: RegExp][] = [
    [['--port', 'x'], { PORT: '1' }, '', /^--port must be a port [^\n]+$/],
    [[], { PORT: '8\n\u009b0' }, '', /, not "8\\x0a\\x9b0"$/],
    [[], {}, 'RATE_LIMIT=fast\n', /^RATE_LIMIT in \.env must be a rate [^\n]+, not "fast"$/],
    [['--database-url', 'a:secret'], {}, '', /^--database-url must start with file: [^\n]+$/],
    [[], { ACCESS_TOKENS_FILE: 'not-there' }, '', /^ACCESS_TOKENS_FILE cannot be read: ENOENT[^\n]*$/],
    [[], { DATABASE_URL_FILE: '~/p.db' }, '', /^DATABASE_URL_FILE has a ~, [^\n]+$/],
    [[], { ACCESS_TOKENS_FILE: 'latin1' }, '', /^ACCESS_TOKENS_FILE cannot be read: [^\n]+ utf-8$/],
    [[], { OIDC_ISSUER: 'https://a:secret@b' }, '', /^OIDC_ISSUER must be [^\n]+ query or fragment$/],
    [[], { DATABASE_URL: 'file://a:secret@b/c' }, '', /^DATABASE_URL does not name a file: write [^\n]+$/],
    [[], { ACCESS_TOKENS_FILE: 'empty' }, '', /^ACCESS_TOKENS_FILE empty is empty$/],
    [[], { DATABASE_URL_FILE: 'url' }, '', /^DATABASE_URL_FILE must start with file:[^\n]+$/],
    [[], both, '', /^DATABASE_URL and DATABASE_URL_FILE are both set; set only one$/],
  ]
  for (const command of ['serve', 'config'])
    for (const [args, env, file, line] of cases) {
      writeFileSync(join(directory, '.env'), file)
      const { code, stdout, stderr } = await runCommand([command, ...args], env, directory)
      t.same({ code, stdout }, { code: 1, stdout: '' }, String(line))
      t.match(stderr.replace(/^plant-store: (.*)\n$/s, '$1'), line)
      t.notMatch(stderr, 'secret')
    }
  const failure = { code: 1, stderr: /^plant-store: \.env cannot be read: / }
  for (const file of [{}, Buffer.from('\ufeffPORT=1', 'utf16le')])
    t.match(await runCommand(['config'], {}, t.testdir({ '.env': file })), failure)
})

test('masks the password anywhere in a URL', async (t) => {
  for (const [url, shown] of [
    ['file:data/plants.db', 'file:data/plants.db'],
    ['postgres://a@h/d', 'postgres://a@h/d'],
    ['postgres://a:b:c@h/d', 'postgres://a:***@h/d'],
    ['postgres://a:b@c@h,i/d', 'postgres://a:***@h,i/d'],
    ['postgres://h/d?sslpassword=a&user=b', 'postgres://h/d?sslpassword=***&user=b'],
    ['postgres://h/d?user=a&password=b#c', 'postgres://h/d?user=a&password=***'],
  ] as const)
    t.equal(maskUrl(url), shown)
})

test('serve --help and docs/configure.md have every setting', async (t) => {
  const help = (await runCommand(['serve', '--help'])).stdout.replaceAll(/\s+/g, ' ')
  const page = readFileSync(new URL('../../docs/configure.md', import.meta.url), 'utf8')
  for (const { name, flag, value, description, unset, hasFile } of settingRows) {
    if (flag) t.match(help, ` ${flag} <${value}> `)
    const file = hasFile ? `, \`${name}_FILE\`` : ''
    t.ok(page.includes(`| \`${name}\`${file} | ${unset} | ${description} |\n`), name)
  }
})

test('listens on one address of localhost, although Fastify would listen on all', async (t) => {
  t.intercept(dns, 'lookup', {
    value: (_host: string, _options: object, done: (error: null, found: object[]) => void) =>
      done(null, [{ address: '127.0.0.1' }, { address: '127.0.0.2' }]),
  })
  const app = fastify()
  t.teardown(() => app.close())
  await listen(app, { host: 'localhost', port: 0 }, String)
  t.equal(app.addresses().length, 1)
})

test('reports an address that cannot be used in one line, with exit code 1', async (t) => {
  const port = await occupy(t, createServer())
  const inUse = (name: string) => `${name} ${port} is in use; try ${name}=${port + 1}`
  for (const [message, env] of [
    [inUse('PORT'), { PORT: String(port) }],
    [inUse('ADMIN_PORT'), { PORT: '0', ADMIN_PORT: String(port) }],
    ['cannot listen on ADMIN_HOST 192.0.2.1, ADMIN_PORT 0:', { ADMIN_HOST: '192.0.2.1', ADMIN_PORT: '0' }],
  ] as const) {
    const refused = await runCommand(['serve'], { ACCESS_TOKENS: token, ...env }, createDirectory(t))
    t.match(refused, { code: 1, stderr: new RegExp(`^plant-store: ${message}[^\\n]*\\n$`) })
  }
})
