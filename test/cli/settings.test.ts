// Where a setting comes from: a flag, the environment, `.env`, or its default; and what is said of mistakes.
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { maskUrl } from '../../src/config/mask.ts'
import { refuseAddress } from '../../src/config/refuse-address.ts'
import { settingEntries } from '../../src/config/settings.ts'
import { ConfigError } from '../../src/config/values.ts'
import { runCommand } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { request, spawnCli, token } from '../support/service.ts'

type Setting = { name: string; value: string | null; from: string }

/** What `plant-store config` shows, by the names of the settings. */
async function showConfig(args: string[], env: NodeJS.ProcessEnv, directory: string) {
  const { stdout, stderr } = await runCommand(['config', '--json', ...args], env, directory)
  const rows = JSON.parse(stdout) as Setting[]
  return { stderr, stdout, settings: new Map(rows.map(({ name, value, from }) => [name, { value, from }])) }
}

test('a flag beats the environment, which beats .env; an empty text counts as none', async (t) => {
  const directory = createDirectory(t)
  writeFileSync(join(directory, '.env'), 'PORT=4001\nBASE_PATH="/of-file"\nLOG_LEVEL=warn\nHOST=::1\n')
  const env = { PORT: '4002', BASE_PATH: '/of-environment', HOST: '' }
  const { settings, stderr } = await showConfig(['--port', '4003', '--log-level', ''], env, directory)
  t.same(settings.get('PORT'), { value: '4003', from: 'flag' })
  t.same(settings.get('BASE_PATH'), { value: '/of-environment', from: 'environment' })
  t.same(settings.get('LOG_LEVEL'), { value: 'warn', from: '.env' })
  t.same(settings.get('HOST'), { value: '::1', from: '.env' })
  t.same(settings.get('DATABASE_URL'), { value: 'file:data/plants.db', from: 'default' })
  t.same(settings.get('ADMIN_PORT'), { value: null, from: 'default' })
  t.equal(stderr, '')
})

test('the settings in force are shown without secrets', async (t) => {
  const env = {
    DATABASE_URL: 'postgres://plants:secret-1@a:5432,b/plants?password=secret-2',
    ACCESS_TOKENS: 'secret-3-secret-3, secret-4-secret-4',
  }
  const directory = createDirectory(t)
  const { settings, stdout } = await showConfig([], env, directory)
  t.equal(settings.get('DATABASE_URL')?.value, 'postgres://plants:***@a:5432,b/plants?password=***')
  t.equal(settings.get('ACCESS_TOKENS')?.value, '***, ***')
  t.notMatch(stdout, 'secret')
  const table = await runCommand(['config'], env, directory)
  t.match(table.stdout, /^SETTING +VALUE +FROM\n/)
  t.match(table.stdout, /\nMAX_CONNECTIONS +\(a little less[^)]+\) +default\n/)
  t.notMatch(table.stdout, 'secret')
})

test('the password of a URL is masked wherever it is', async (t) => {
  for (const [url, shown] of [
    ['file:data/plants.db', 'file:data/plants.db'],
    ['postgres://a@h/d', 'postgres://a@h/d'],
    ['postgres://a:b:c@h/d', 'postgres://a:***@h/d'],
    ['postgres://a:b@c@h,i/d', 'postgres://a:***@h,i/d'],
    ['postgres://h/d?sslpassword=a&user=b', 'postgres://h/d?sslpassword=***&user=b'],
    ['postgres://h/d?user=a&password=b#c', 'postgres://h/d?user=a&password=***#c'],
  ] as const)
    t.equal(maskUrl(url), shown)
})

test('there is a warning of a short token, without its value, and none of the variables of other programs', async (t) => {
  const directory = createDirectory(t)
  const env = {
    ACCESS_TOKENS: `${token},secret,exactly-16-chars`,
    ACESS_TOKENS: 'x',
    PORTS: '1',
    OTEL_METRICS_EXPORTER: 'none',
  }
  const warning = 'ACCESS_TOKENS: token 2 has fewer than 16 characters and may be guessed'
  const config = await runCommand(['config'], env, directory)
  t.match(config, { code: 0, stderr: `plant-store: warning: ${warning}\n` })

  const { child, ended, output } = spawnCli(t, ['serve'], { ...env, PORT: '0' }, directory)
  child.stdout.once('data', () => child.kill('SIGTERM'))
  t.match(await ended, { code: 0 })
  const lines = output().stderr.trim().split('\n')
  const logged = lines.map((line) => JSON.parse(line)).filter(({ level }) => level === 40)
  t.same(
    logged.map(({ msg }) => msg),
    [warning],
  )
  t.notMatch(config.stdout + config.stderr + output().stderr, 'secret')
})

test('.env may begin with a byte order mark and end its lines as Windows does', async (t) => {
  const directory = createDirectory(t)
  writeFileSync(join(directory, '.env'), '\ufeffPORT=4001\r\nBASE_PATH=/a\r\n')
  const { settings, stderr } = await showConfig([], {}, directory)
  t.same(settings.get('PORT'), { value: '4001', from: '.env' })
  t.same(settings.get('BASE_PATH'), { value: '/a', from: '.env' })
  t.equal(stderr, '')
})

test('there is a warning of a secret in a flag, and one in a misspelt flag is not repeated', async (t) => {
  const directory = createDirectory(t)
  const url = 'postgres://a:secret@127.0.0.1:1/b'
  const warning = (flag: string, name: string) =>
    `plant-store: warning: every user of this machine can see the secret in ${flag}; put ${name} into the environment or .env\n`
  const bare = await runCommand(
    ['config', '--access-tokens', `${token}secret`, '--database-url', url],
    {},
    directory,
  )
  t.equal(
    bare.stderr,
    warning('--database-url', 'DATABASE_URL') + warning('--access-tokens', 'ACCESS_TOKENS'),
  )
  const list = await runCommand(['token', 'list', '--database-url', url], {}, directory)
  t.match(list.stderr, warning('--database-url', 'DATABASE_URL'))
  const open = await runCommand(
    ['config', '--database-url', 'postgres://a@b/c'],
    { DATABASE_URL: url },
    directory,
  )
  t.equal(open.stderr, '')
  const misspelt = await runCommand(['serve', '--acess-tokens=secret'], {}, directory)
  t.match(misspelt, { code: 2, stderr: /^error: unknown option '--acess-tokens=\*\*\*'/ })
  t.notMatch(bare.stdout + list.stdout + open.stdout + misspelt.stderr, 'secret')
})

test('an impossible database is refused by the name of its setting', async (t) => {
  const directory = createDirectory(t)
  const cases: [url: string, reason: string][] = [
    ['file:.', 'DATABASE_URL names a folder, not a file: '],
    ['file:///', 'DATABASE_URL names a folder, not a file: '],
    ['file://data/plants.db', 'DATABASE_URL names no file: file://data/plants.db; a path follows'],
    ['file:///data%2Fplants.db', 'DATABASE_URL must not have a / written as %2F'],
    ['file:a%00b', 'DATABASE_URL names no file: file:a%00b; a path follows'],
    [
      'postgres://a:secret@127.0.0.1:1/b?sslrootcert=none.pem',
      'cannot use the database of DATABASE_URL: ENOENT: ',
    ],
  ]
  for (const [url, reason] of cases)
    for (const args of [['serve'], ['token', 'list']]) {
      const { code, stdout, stderr } = await runCommand(args, { DATABASE_URL: url, PORT: '0' }, directory)
      t.strictSame({ code, stdout, lines: stderr.split('\n').length }, { code: 1, stdout: '', lines: 2 }, url)
      t.ok(stderr.startsWith(`plant-store: ${reason}`), stderr)
      t.notMatch(stderr, 'secret')
    }
})

test('a message names a setting as its user wrote it: flag, variable or .env', async (t) => {
  const directory = createDirectory(t)
  const cases: [args: string[], env: NodeJS.ProcessEnv, file: string, line: RegExp][] = [
    [['--port', 'x'], { PORT: '1' }, '', /^plant-store: --port must be a port [^\n]+\n$/],
    [[], { ACCESS_TOKENS: ' , ' }, '', /^plant-store: ACCESS_TOKENS must hold a token[^\n]*\n$/],
    [[], { PORT: '8\n\u009b0' }, '', /, not "8\\x0a\\x9b0"\n$/],
    [[], {}, 'RATE_LIMIT=fast\n', /^plant-store: RATE_LIMIT in \.env must be a rate [^\n]+, not "fast"\n$/],
    [['--database-url', 'a:secret'], {}, '', /^plant-store: --database-url must start with file: [^\n]+\n$/],
  ]
  for (const [args, env, file, line] of cases) {
    writeFileSync(join(directory, '.env'), file)
    const { code, stdout, stderr } = await runCommand(['serve', ...args], env, directory)
    t.match({ code, stdout, stderr }, { code: args.length > 0 ? 2 : 1, stdout: '', stderr: line })
    t.notMatch(stderr, 'secret')
  }
  writeFileSync(join(directory, '.env'), '')
  const missing = 'postgres://a:s3cret@127.0.0.1:1/none'
  const met: [args: string[], line: RegExp][] = [
    [
      ['serve', '--host', '192.0.2.1', '--port', '0'],
      /^plant-store: --host 192\.0\.2\.1 is not an address [^\n]+\n$/,
    ],
    ...['status', 'verify', 'export', 'token list', 'token create --name a'].map(
      (words): [string[], RegExp] => [
        [...words.split(' '), '--database-url', missing],
        /plant-store: cannot use the database of --database-url: 127\.0\.0\.1:1\/none: nothing listens there: [^\n]+ECONNREFUSED[^\n]+\n$/,
      ],
    ),
  ]
  met.push([
    // Neither the URL nor a user names the database.
    ['status', '--database-url', 'postgres://127.0.0.1:1'],
    /plant-store: cannot use the database of --database-url: 127\.0\.0\.1:1: nothing listens there: [^\n]+\n$/,
  ])
  for (const [args, line] of met) {
    const { code, stderr } = await runCommand(args, {}, directory)
    t.match({ code, stderr }, { code: 1, stderr: line }, args.join(' '))
    t.notMatch(stderr, 's3cret')
  }
  const odd = createDirectory(t)
  mkdirSync(join(odd, '.env'))
  t.match(await runCommand(['token', 'list'], {}, odd), {
    code: 1,
    stderr: /^plant-store: \.env cannot be read: /,
  })
})

test('serve takes every setting but those of traces as a flag, and says its default', async (t) => {
  const help = (await runCommand(['serve', '--help'], {}, createDirectory(t))).stdout.replaceAll(/\s+/g, ' ')
  for (const [, { name, flag, value, defaultLabel, hasFile }] of settingEntries)
    if (name.startsWith('OTEL_')) t.notOk(flag, name)
    else {
      t.match(help, ` ${flag} <${value}> `)
      t.match(help, `(${hasFile ? `${name}, or ${name}_FILE` : name}; default: ${defaultLabel})`)
    }
  t.notMatch(help, /otel/i)
  t.ok((help.match(/ --[a-z]/g) ?? []).length <= 32, 'few enough to be read')
})

test('the service runs by flags alone', async (t) => {
  const args = ['serve', '--port', '0', '--base-path', '/of-flag', '--access-tokens', token]
  const { child, ended, output } = spawnCli(t, args, { BASE_PATH: '/other' }, createDirectory(t))
  const url = await new Promise<string>((resolve) => {
    child.stdout.on('data', () => {
      const [, origin] = /listening on (\S+)/.exec(output().stdout) ?? []
      if (origin) resolve(origin)
    })
  })
  t.equal((await request(`${url}/of-flag/plants`)).text, '[]')
  child.kill('SIGTERM')
  t.match(await ended, { code: 0 })
})

test('an unavailable address is explained by its settings', async (t) => {
  const cases: [code: string, port: number, line: string][] = [
    ['EADDRINUSE', 3000, 'PORT 3000 is in use; try PORT=3001'],
    ['EADDRINUSE', 65_535, 'PORT 65535 is in use; try PORT=65534'],
    ['EACCES', 80, 'PORT 80 is not open to this user; try PORT=3000'],
    ['ENOTFOUND', 1, 'HOST a.test cannot be resolved'],
    ['EAI_AGAIN', 1, 'HOST a.test cannot be resolved'],
    ['EADDRNOTAVAIL', 1, 'HOST a.test is not an address of this machine'],
    ['EINVAL', 1, 'cannot listen on HOST a.test, PORT 1: odd'],
  ]
  for (const [code, port, line] of cases) {
    const error = Object.assign(new Error('odd'), { code })
    t.throws(() => refuseAddress('', { host: 'a.test', port })(error), {
      constructor: ConfigError,
      message: line,
    })
  }
})

test('a port in use is reported in one line, with exit code 1', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  for (const [name, env] of [
    ['PORT', { PORT: String(port) }],
    ['ADMIN_PORT', { PORT: '0', ADMIN_PORT: String(port) }],
  ] as const) {
    const { ended, output } = spawnCli(t, ['serve'], { ACCESS_TOKENS: token, ...env }, createDirectory(t))
    t.match(await ended, { code: 1 })
    t.equal(output().stderr, `plant-store: ${name} ${port} is in use; try ${name}=${port + 1}\n`)
  }
})
