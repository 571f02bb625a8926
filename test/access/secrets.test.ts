// Passwords of databases, and tokens: where ps, a log or the network could show them.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { startRelay } from '../store/relay.ts'
import { runCommand, spawnCli } from '../support/commands.ts'
import { fill } from '../support/copies.ts'
import { createDirectory, findEngine, sharedServer, sqlite, testPostgres } from '../support/engines.ts'
import { passwordRole } from '../support/postgres.ts'
import { startService } from '../support/service.ts'
import { open, openStore } from '../support/stores.ts'
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
  // The file is empty during execve(2).
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
  t.match(bare, { code: 0, stderr: '' })
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

testPostgres('the secret of a token is not sent to the database', async (t, direct) => {
  await (await openStore(direct)).close()
  const { relay, url } = await startRelay(t, direct)
  const { stdout } = await runCommand(['token', 'create', '--name', 'a'], { DATABASE_URL: direct })
  let isSent = false
  void relay.breakAt(stdout.trim(), 'before').then(() => (isSent = true))
  for (const verb of ['rotate', 'revoke'])
    t.match(await runCommand(['token', verb, stdout.trim()], { DATABASE_URL: url }), { code: 0 }, verb)
  t.equal(isSent, false)
})
