// The command line: what it understands, what it says, and how it exits.

import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pino from 'pino'
import { type Test, test } from 'tap'
import { runCommand } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { request, startService } from '../support/service.ts'
import { openStore } from '../support/sql-store.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** Runs a command to its end in an empty directory. */
const run = (t: Test, args: string[], env: NodeJS.ProcessEnv = {}, cwd = createDirectory(t)) =>
  runCommand(args, env, cwd)

test('--help says what there is, for every command', async (t) => {
  const commands = [
    [],
    ['serve'],
    ['config'],
    ['token'],
    ['token', 'create'],
    ['token', 'list'],
    ['token', 'rotate'],
    ['token', 'revoke'],
    ['import'],
    ['export'],
    ['backup'],
    ['restore'],
    ['verify'],
    ['copy'],
    ['status'],
    ['completion'],
    ['openapi'],
  ]
  for (const command of commands) {
    const { code, stdout, stderr } = await run(t, [...command, '--help'])
    t.match({ code, stderr }, { code: 0, stderr: '' })
    t.match(stdout, new RegExp(`^Usage: ${['plant-store', ...command].join(' ')}`))
    t.match(stdout, /--help/)
  }
  const { stdout } = await run(t, ['--help'])
  for (const name of [
    'serve',
    'token',
    'copy',
    'status',
    'completion',
    'openapi',
    'DATABASE_URL',
    'Exit codes',
  ])
    t.match(stdout, name)
})

test('--version is the version of the package', async (t) => {
  t.same(await run(t, ['--version']), { code: 0, stdout: `${version}\n`, stderr: '' })
})

test('arguments that are not understood are refused with a hint, and exit code 2', async (t) => {
  const lines: [args: string[], hint: RegExp][] = [
    [[], /Usage: plant-store/],
    [['srve'], /unknown command 'srve'[\s\S]*Did you mean serve/],
    [['help', 'nothing'], /Usage/],
    [['--nothing'], /unknown option '--nothing'[\s\S]*--help/],
    [['serve', '--prot', '1'], /unknown option '--prot'[\s\S]*--help/],
    [['serve', 'now'], /too many arguments[\s\S]*--help/],
    [['token'], /Usage: plant-store token/],
    [['token', 'craete'], /unknown command 'craete'[\s\S]*Did you mean create/],
    [['token', 'create'], /--name/],
    [['token', 'create', '--name', ' '], /1 to 100 characters/],
    [['token', 'create', '--name', '🌱'.repeat(101)], /1 to 100 characters/],
    [['token', 'create', '--name', 'a\nb'], /no control characters/],
    [['token', 'create', '--name', 'a\u009bb'], /no control characters/],
    [['token', 'create', '--name', 'a', '--scope', 'plants'], /plants:read, plants:write/],
    [['token', 'create', '--name', 'a', '--expires', 'soon'], /such as 90d/],
    ...['2001-01-01', '2100-02-30', '2100-1-31', '2100-01-31T12:00'].map((time): [string[], RegExp] => [
      ['token', 'create', '--name', 'a', '--expires', time],
      /future date/,
    ]),
    [['token', 'revoke'], /missing required argument 'token'/],
  ]
  const check = async ([args, hint]: (typeof lines)[number]) => {
    const directory = createDirectory(t)
    const { code, stdout, stderr } = await run(t, args, {}, directory)
    t.match({ code, stdout }, { code: 2, stdout: '' }, args.join(' '))
    t.match(stderr, hint)
    t.notMatch(stderr, /node:|\n {4}at /)
    t.notOk(existsSync(join(directory, 'data')), 'nothing was made')
  }
  for (const line of lines) await check(line)
})

test('tokens are created, listed and revoked', async (t) => {
  const DATABASE_URL = `file:${join(createDirectory(t), 'plants.db')}`
  const store = await openStore(DATABASE_URL, { logger: pino({ level: 'silent' }) })
  await store.close()
  const token = (...args: string[]) => run(t, ['token', ...args], { DATABASE_URL })
  const created = [
    await token('create', '--name', 'all'),
    await token('create', '--name', 'reader', '--scope', 'plants:read', 'plants:read', '--expires', '90d'),
    await token('create', '--name', 'writer', '--scope', 'plants:write', '--expires', '2100-01-31'),
  ]
  for (const { code, stdout, stderr } of created) {
    const ends = stderr === '' ? '' : `${stdout.slice(6, 14)} expires at `
    t.match({ code, stderr }, { code: 0, stderr: ends })
    t.match(stdout, /^plant_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}_[0-9A-Za-z]{6}\n$/)
  }
  const { stdout: fourth } = await token('create', '--name', '花', '--json')
  t.match(created[2]?.stderr, / expires at 2100-02-01T00:00:00\.000Z\n$/, 'through that day')
  const { token: text, ...made } = JSON.parse(fourth)
  const { id: last } = made
  t.strictSame(made, { id: last, name: '花', scopes: ['plants:read', 'plants:write'], expires: null })
  t.equal(text.slice(6, 14), last)
  t.strictSame(JSON.parse((await token('revoke', last, '--json')).stdout), { id: last, name: '花' })
  const ids = created.map(({ stdout }) => stdout.slice(6, 14))
  const revoked = await token('revoke', ids[0] as string)
  t.match(revoked, { code: 0, stdout: `revoked ${ids[0]}\n` })
  const again = await token('revoke', ids[0] as string)
  t.match(again, { code: 1, stdout: '', stderr: `plant-store: token ${ids[0]} is already revoked\n` })

  const list = JSON.parse((await token('list', '--json')).stdout)
  t.equal(list.length, 4)
  t.match(list, [
    { id: ids[0], name: 'all', scopes: ['plants:read', 'plants:write'], expires: null, lastUsed: null },
    { id: ids[1], name: 'reader', scopes: ['plants:read'], revoked: null },
    {
      id: ids[2],
      name: 'writer',
      scopes: ['plants:write'],
      expires: '2100-02-01T00:00:00.000Z',
      revoked: null,
    },
  ])
  t.ok(Math.abs(Date.parse(list[1].expires) - Date.parse(list[1].created) - 90 * 86_400_000) < 60_000)
  t.ok(Date.parse(list[0].revoked) >= Date.parse(list[0].created))
  const table = (await token('list')).stdout
  t.equal(table.split('\n').length, 6)
  t.match(table, / {2}花 {6}plants:read/, 'a wide letter takes two places')
  for (const id of ids) t.match(table, id)
  for (const { stdout } of created) t.notMatch(table + JSON.stringify(list), stdout.slice(15, 47))
  const timed = await token('create', '--name', '🌱'.repeat(100), '--expires', '2100-01-31T12:00+02:00')
  t.match(timed.stderr, / expires at 2100-01-31T10:00:00\.000Z\n$/)
})

test('JSON has every member, with null where there is nothing', async (t) => {
  const directory = createDirectory(t)
  writeFileSync(join(directory, 'a.ndjson'), '{"name":"a","tag":""}')
  const json = async (...words: string[]) =>
    JSON.parse((await run(t, [...words, '--json'], { DATABASE_URL: 'file:a.db' }, directory)).stdout)
  const added = await json('import', 'a.ndjson')
  t.match(added, { valid: 1, added: 1 })
  t.strictSame(Object.keys(await json('import', 'a.ndjson', '--dry-run')), Object.keys(added))
  t.match(await json('export', 'b.ndjson'), { file: 'b.ndjson', format: 'ndjson', compression: null })
  t.match(await json('status'), { cluster: null })
  t.match(await json('token', 'create', '--name', 'a'), { name: 'a', expires: null })
  const file = new DatabaseSync(join(directory, 'a.db'))
  file.exec('DROP TRIGGER plants_no_delete')
  file.close()
  t.match(await json('verify'), { faults: [{ position: null, detail: /./ }] })
})

test('openapi writes the document as YAML or JSON, on standard output or into a file', async (t) => {
  const directory = createDirectory(t)
  const yaml = (await run(t, ['openapi'], {}, directory)).stdout
  t.match(yaml, /^openapi: 3\.1\.0\n/)
  t.match(await run(t, ['openapi', '--output', 'a.yaml'], {}, directory), { code: 0, stdout: '', stderr: '' })
  t.equal(readFileSync(join(directory, 'a.yaml'), 'utf8'), yaml)
  t.equal((await run(t, ['openapi', '--output', '-'], {}, directory)).stdout, yaml)
  writeFileSync(join(directory, 'a.yaml'), 'precious')
  t.match(await run(t, ['openapi', '--output', 'a.yaml'], {}, directory), {
    code: 1,
    stderr: / already exists\n$/,
  })
  t.equal(readFileSync(join(directory, 'a.yaml'), 'utf8'), 'precious')
  t.match(await run(t, ['openapi', '--output', 'a.yaml', '--force'], {}, directory), { code: 0 })
  t.equal(readFileSync(join(directory, 'a.yaml'), 'utf8'), yaml)
  const json = await run(t, ['openapi', '--json'], { BASE_PATH: '/v1' })
  t.match(JSON.parse(json.stdout), { openapi: '3.1.0', servers: [{ url: '/v1' }] })
  writeFileSync(join(directory, '.env'), 'BASE_PATH=/of-file\n')
  t.match((await run(t, ['openapi'], {}, directory)).stdout, 'url: /of-file\n')
  t.match(await run(t, ['openapi', '-o', 'no/such/directory'], {}, directory), {
    code: 1,
    stderr: /^plant-store: cannot write no\/such\/directory: ENOENT[^\n]*\n$/,
  })
  t.notOk(existsSync(join(directory, 'data')))
})

test('the first start prints one token and a working curl line; the second prints none', async (t) => {
  const directory = createDirectory(t)
  const env = { ACCESS_TOKENS: '', BASE_PATH: '/v1' }
  const first = await startService(t, env, directory)
  const { stdout } = first.output()
  const [, printed] = /^ {2}(plant_\S+)$/m.exec(stdout) ?? []
  const [, line] = /^ {2}(curl .*)$/m.exec(stdout) ?? []
  t.ok(printed)
  t.equal(stdout.match(/plant_\w+/g)?.length, 2, 'it stands there, and in the curl line')
  t.match(stdout, /\nlistening on http:\/\/127\.0\.0\.1:\d+\n$/)
  t.ok(existsSync(join(directory, 'data', 'plants.db')), 'the data directory was made')
  const headers = { authorization: `Bearer ${printed}` }
  await request(`${first.url}/v1/plants`, { body: { name: 'a', tag: '' }, headers })
  const answered = await promisify(execFile)('sh', ['-c', line as string])
  t.equal(answered.stdout, '[{"name":"a","tag":""}]')
  first.child.kill('SIGTERM')
  t.match(await first.ended, { code: 0 })

  const second = await startService(t, env, directory)
  t.match(
    second.output().stdout,
    /^store: [^\n]+ \(opened\)\ntokens: 1 valid; [^\n]+\nlistening on http:\/\/127\.0\.0\.1:\d+\n$/,
  )
  t.equal((await request(`${second.url}/v1/plants`, { headers })).text, '[{"name":"a","tag":""}]')
  const list = JSON.parse((await run(t, ['token', 'list', '--json'], {}, directory)).stdout)
  t.match(list, [{ name: 'first', scopes: ['plants:read', 'plants:write'], expires: null }])
  t.equal(list.length, 1)
})

test('with ACCESS_TOKENS no token is made', async (t) => {
  const directory = createDirectory(t)
  const service = await startService(t, {}, directory)
  t.match(service.output().stdout, /^store: [^\n]+ \(created\)\nlistening on \S+\n$/)
  t.equal((await run(t, ['token', 'list', '--json'], {}, directory)).stdout, '[]\n')
})
