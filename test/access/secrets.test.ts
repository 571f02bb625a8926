// Passwords of databases: where ps, a log or the network could show them.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { findPlainHosts } from '../../src/store/postgres/postgres-engine.ts'
import { runCommand, spawnCli } from '../support/commands.ts'
import { fill } from '../support/copies.ts'
import { createDirectory, findEngine, sharedServer, sqlite, testPostgres } from '../support/engines.ts'
import { passwordRole } from '../support/postgres.ts'
import { startService } from '../support/service.ts'
import { collectLines, open, openStore } from '../support/stores.ts'
import { until } from '../support/until.ts'

const { engine: postgres, skip: noPostgres } = findEngine('PostgreSQL')
const password = 'correct-horse'

/** The URL, without the password, of a database that requires one. */
async function createGuarded(t: Test): Promise<string> {
  const url = await postgres.createDatabase(t)
  const server = await sharedServer()
  await server.query(`DO $$ BEGIN CREATE ROLE ${passwordRole} LOGIN PASSWORD '${password}' SUPERUSER;
    EXCEPTION WHEN duplicate_object THEN NULL; END $$`)
  return url.replace('postgres@', `${passwordRole}@`)
}

/** Runs a command; `shown`: what ps showed of it. */
async function watch(t: Test, args: string[], env: NodeJS.ProcessEnv) {
  const { child, ended } = spawnCli(t, args, env)
  let shown = ''
  // The file is empty while one program replaces another.
  for (; !shown.includes(String(args[0])); await sleep(1))
    shown = readFileSync(`/proc/${child.pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  return { shown, ...(await ended) }
}

test('a password from the environment or a file is shown by neither ps nor the output', {
  skip: noPostgres || process.platform !== 'linux',
}, async (t) => {
  const from = await sqlite.createDatabase(t)
  await fill(await open(t, from), 10)
  const to = await createGuarded(t)
  const TARGET = to.replace('@', `:${password}@`)
  const file = join(createDirectory(t), 'url')
  writeFileSync(file, `${TARGET}\n`, { mode: 0o600 })
  const sockets = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
  const before = sockets()
  const locked = openStore(to, { mode: 'read' })
  await t.rejects(locked, { message: /password/ }, 'it cannot be opened without the password')
  await until(() => sockets() <= before)
  const ways: [args: string[], env: NodeJS.ProcessEnv][] = [
    [['copy', '--from', from, '--to', 'env:TARGET', '--quiet'], { TARGET }],
    [['verify', '--quiet'], { DATABASE_URL_FILE: file }],
  ]
  for (const [args, env] of ways) {
    const { code, shown, stdout, stderr } = await watch(t, args, env)
    t.match({ code, stderr }, { code: 0, stderr: '' }, args.join(' '))
    t.notMatch(shown + stdout, password)
  }
  const { output } = await startService(t, { DATABASE_URL: TARGET })
  t.match(output().stdout, /^store: postgres:/m)
  t.notMatch(output().stdout, password)
  const bare = await watch(t, ['verify', '--database-url', TARGET, '--quiet'], {})
  t.ok(bare.shown.includes(password), 'ps shows a URL on the command line')
  const warning = 'ps shows the password in --database-url; use an environment variable'
  t.match(bare, { code: 0, stderr: new RegExp(`^plant-store: warning: ${warning}\n$`) })
})

test('a variable without a URL is reported in one line with its name', async (t) => {
  for (const [env, reason] of [
    [{}, /^plant-store: --to names the environment variable TARGET, which is not set\n/],
    [{ TARGET: `mysql://a:${password}@h/plants` }, /^plant-store: TARGET must start with file:[^\n]+\n$/],
  ] as const) {
    const { code, stderr } = await runCommand(['copy', '--from', 'file:a.db', '--to', 'env:TARGET'], env)
    t.equal(code, 1)
    t.match(stderr, reason)
    t.notMatch(stderr, password)
  }
})

test('a message that repeats the command line masks the password', async (t) => {
  for (const [url, shown] of [
    [`postgres://a:${password}@h/plants`, 'postgres://a:***@h/plants'],
    [`postgres://h/plants?password=it's ${password}&user=a`, 'postgres://h/plants?password=***&user=a'],
  ] as const)
    t.match(await runCommand([url]), { code: 2, stderr: `unknown command '${shown}'` })
})

testPostgres('a start warns once about PostgreSQL on another host without TLS', async (t, url) => {
  const warningsFor = async (url: string) => {
    const { logger, lines } = collectLines()
    await (await openStore(url, { logger, mode: 'serve' })).close()
    return lines.filter(({ msg }) => msg.includes('not encrypted'))
  }
  // An address of this machine that looks remote.
  const [warning, ...more] = await warningsFor(url.replace('127.0.0.1', '0.0.0.0'))
  t.match(warning, {
    level: 40,
    msg: /^the connection to 0\.0\.0\.0:\d+ is not encrypted, or the server's certificate is not checked: add sslmode=verify-full/,
  })
  t.same(more, [])
  t.same(await warningsFor(url), [], 'no warning for this machine')
})

test('a connection is safe only with verified TLS, on a socket or on this machine', async (t) => {
  const cases: [url: string, plain: string[]][] = [
    ['postgres://a@h/plants', ['h:5432']],
    ['postgres://a@10.0.0.1:5433/plants?sslmode=disable', ['10.0.0.1:5433']],
    ['postgres://a@h/plants?sslmode=verify-full', []],
    ['postgres://a@h/plants?sslmode=verify%2Dca', []],
    ['postgres://a@h/plants?sslmode=require&sslmode=disable', []],
    ['postgres://a@h/plants?sslmode=no-verify', ['h:5432']],
    ['postgres://a@localhost/plants', []],
    ['postgres://a@127.1.2.3/plants', []],
    ['postgres://a@[::1]/plants', []],
    ['postgres://a@/plants?host=/run/postgresql', []],
  ]
  for (const [url, plain] of cases) t.same(findPlainHosts([url]), plain, url)
  const urls = cases.map(([url]) => url)
  t.same(findPlainHosts(urls.slice(0, 3)), ['h:5432', '10.0.0.1:5433'])
})
