// What every command keeps to: a reader that goes away, a disk that is full, a signal.
import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import tap, { before, type Test, test } from 'tap'
import { doLongWork, Interrupted } from '../../src/cli/console/long-work.ts'
import { copyVerified } from '../../src/maintenance/backup/back-up.ts'
import { count } from '../../src/runtime/count.ts'
import { runCommand } from '../support/commands.ts'
import { beginCopy, between, copy, fill, open, sumLog } from '../support/copies.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { runProgram } from '../support/imports.ts'
import { inherited } from '../support/processes.ts'

const cli = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))
const plants = 4000

/** Runs a line of bash in which `plant-store` is the command; `status` has the exit codes of a pipe's parts. */
async function shell(t: Test, line: string, env: NodeJS.ProcessEnv) {
  const script = `plant-store() { '${process.execPath}' '${cli}' "$@"; }; ${line}; echo "\${PIPESTATUS[0]}"`
  const options = { cwd: createDirectory(t), env: { ...inherited(), ...env } }
  return promisify(execFile)('bash', ['--norc', '-c', script], options)
}

/** A store with so many plants and tokens that a list of either fills every buffer on its way. */
async function makeFullStore(): Promise<string> {
  const url = await sqlite.createDatabase(tap)
  const store = await open(tap, url)
  await fill(store, plants)
  const rows = Array.from(
    { length: 2000 },
    (_, n) => `('${n}', '${'x'.repeat(90)}', '${'0'.repeat(64)}', 'plants:read', 0, NULL, NULL, NULL)`,
  )
  await store.sql.execute(`INSERT INTO tokens VALUES ${rows}`)
  return url
}

/** It is only read. */
let fullStore: string
before(async () => {
  fullStore = await makeFullStore()
})

test('a reader that goes away ends a command quietly with 0', async (t) => {
  const DATABASE_URL = fullStore
  const lines = [
    'token list | head -1 >head',
    'export --quiet | head -1 >head',
    'export --quiet --format csv --compress gzip | head -c 1 >head',
    'openapi | head -0',
  ]
  for (const line of lines) {
    const { stdout, stderr } = await shell(t, `plant-store ${line}`, { DATABASE_URL })
    t.strictSame({ stdout, stderr }, { stdout: '0\n', stderr: '' }, line)
  }
})

test('an import goes on when nobody reads what it reports', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  const lines = Array.from({ length: 12 }, () => '{}\\n{"name":"a","tag":""}\\n').join('')
  const line = `{ sleep 1; printf '${lines}'; } | { plant-store import - --json 2>&1 >result; echo $? >code; } | head -0`
  const { stdout } = await shell(t, `${line}; cat result code`, { DATABASE_URL })
  t.match(stdout, /"added": 12,[\s\S]*"rejected": 12,[\s\S]*\n1\n/)
})

test('stdout on a full disk is reported in one line, with exit code 1', {
  skip: !existsSync('/dev/full'),
}, async (t) => {
  const DATABASE_URL = fullStore
  for (const command of ['token list', 'export --quiet']) {
    const { stdout, stderr } = await shell(t, `plant-store ${command} >/dev/full`, { DATABASE_URL })
    t.equal(stdout, '1\n')
    t.match(stderr, /^plant-store: cannot write to stdout: ENOSPC[^\n]*\n$/)
  }
  // Another fault is told, too.
  const url = await sqlite.createDatabase(t)
  const env = {
    DATABASE_URL: url,
    PORT: '0',
    LOG_LEVEL: 'silent',
    FIRST_TOKEN_FILE: fileURLToPath(import.meta.url),
  }
  const { stdout, stderr } = await shell(t, 'plant-store serve >/dev/full', env)
  t.equal(stdout, '1\n')
  t.match(
    stderr,
    /cannot write to stdout: ENOSPC[^\n]*\nplant-store: FIRST_TOKEN_FILE \S+ already exists[^\n]*\n$/,
  )
})

test('a message names a file that cannot be written as it was given', async (t) => {
  const url = fullStore
  const folder = createDirectory(t)
  const backup = join(folder, 'b.db')
  await copyVerified(fileURLToPath(url), backup, {})
  const cases: [name: string, args: (file: string) => string[]][] = [
    ['a.ndjson', (file) => ['export', file]],
    ['a.db', (file) => ['backup', file]],
    ['r.db', (file) => ['restore', backup, '--database-url', `file:${file}`]],
    ['a.yaml', (file) => ['openapi', '-o', file]],
  ]
  for (const [name, args] of cases) {
    // 16 KiB for each file. Without the tests' instruments, which write, too.
    const limit = [
      '-i',
      `DATABASE_URL=file:${backup}`,
      'sh',
      '-c',
      'ulimit -f 16; exec "$0" "$@"',
      process.execPath,
    ]
    const full = await runProgram(t, 'env', [...limit, cli, ...args(join(folder, name))])
    t.match(full, { code: 1, stdout: '' }, name)
    t.match(full.stderr, new RegExp(`^plant-store: cannot [^\n]+${join(folder, name)}: [^\n]+\n$`))
    t.notMatch(full.stderr, '.partial')
    if (name === 'r.db') continue
    const missing = await runCommand(args(`no/${name}`), { DATABASE_URL: url }, folder)
    t.match(missing, { code: 1, stderr: `plant-store: cannot write no/${name}: ENOENT: ` })
    t.notMatch(missing.stderr, '.partial')
  }
  t.strictSame(
    readdirSync(folder).filter((name) => name !== 'a.yaml'),
    ['b.db'],
  )
})

test('data for a stdout that is closed is refused, before anything is done', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  await fill(await open(t, DATABASE_URL), 3)
  for (const command of [
    'export',
    'backup -',
    'openapi',
    'token create --name a',
    'token rotate "gardener 0"',
  ]) {
    const { stdout, stderr } = await shell(t, `plant-store ${command} >&-`, { DATABASE_URL })
    t.equal(stdout, '1\n', command)
    t.equal(stderr, 'plant-store: stdout is closed: there is nowhere to write to\n')
    const nowhere = await shell(t, `plant-store ${command} >/dev/null`, { DATABASE_URL })
    t.equal(nowhere.stdout, '0\n', 'but not for one that goes nowhere')
  }
  const { stdout } = await runCommand(['token', 'list', '--json'], { DATABASE_URL })
  t.equal(JSON.parse(stdout).length, 3, 'the token of the store, and those of the commands that wrote')
})

test('a token that cannot be printed is revoked again', { skip: !existsSync('/dev/full') }, async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  await fill(await open(t, DATABASE_URL), 1)
  for (const command of ['token create --name a --json', 'token rotate "gardener 0"']) {
    const { stdout, stderr } = await shell(t, `plant-store ${command} >/dev/full`, { DATABASE_URL })
    t.equal(stdout, '1\n')
    t.match(
      stderr,
      /\nplant-store: the token could not be printed, so \w{8} was revoked again: ENOSPC[^\n]*\n$/,
    )
  }
  const list = JSON.parse((await runCommand(['token', 'list', '--json'], { DATABASE_URL })).stdout)
  t.strictSame(
    list.map(({ name, revoked }: Record<string, string | null>) => [name, revoked !== null]).sort(),
    [
      ['a', true],
      ['gardener 0', false],
      ['gardener 0', true],
    ],
  )
  t.match(
    await runCommand(['token', 'rotate', 'gardener 0'], { DATABASE_URL }),
    { code: 0 },
    'and again it works',
  )
})

test('nothing is coloured, with NO_COLOR or without', async (t) => {
  for (const env of [{ NO_COLOR: '1' }, { FORCE_COLOR: '3', TERM: 'xterm-256color' }]) {
    const { stdout } = await runCommand(['token', 'list'], { DATABASE_URL: fullStore, ...env })
    t.match(stdout, /^ID +NAME/)
    t.notMatch(stdout, '\u001b')
  }
})

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  test(`${signal} lets a copy finish its batch, says how to go on, and is ${code}`, async (t) => {
    const [from, to] = [await sqlite.createDatabase(t), await sqlite.createDatabase(t)]
    const source = await open(t, from)
    await fill(source, plants)
    const { child, ended, output, target } = await beginCopy(t, { from, to }, 50)
    child.kill(signal)
    t.match(await ended, { code, signal: null })
    t.strictSame(output(), {
      stdout: '',
      stderr: 'plant-store: the copy was interrupted. Run it again to go on.\n',
    })
    const { position } = await target.log.head()
    t.equal(position % 50, 0, 'a whole number of batches')
    t.ok(position < plants)
    const { stdout } = await copy(from, to)
    const sum = await sumLog(source)
    t.equal(
      stdout,
      `copied ${count(plants - position, 'plant')} and 1 token ${between(from, to)}; both hold ${count(plants, 'plant')} now, SHA-256 ${sum}\n`,
    )
  })

test('copy says what it did as JSON, too', async (t) => {
  const [from, to] = [await sqlite.createDatabase(t), await sqlite.createDatabase(t)]
  const source = await open(t, from)
  await fill(source, 3)
  const { code, stdout } = await runCommand(['copy', '--from', from, '--to', to, '--json'])
  t.equal(code, 0)
  const checksum = await sumLog(source)
  const names = { from: fileURLToPath(from), to: fileURLToPath(to) }
  t.strictSame(JSON.parse(stdout), { ...names, made: true, added: 3, tokens: 1, plants: 3, checksum })
})

test('a second signal ends the process at once, but an echo of the first does not', async (t) => {
  const script = `
    import { doLongWork } from ${JSON.stringify(new URL('../../src/cli/console/long-work.ts', import.meta.url))}
    await doLongWork({ describe: () => 'stopped' }, async (_, signal) => {
      signal.addEventListener('abort', () => console.log('asked'))
      console.log('ready')
      for (;;) await new Promise((resolve) => setTimeout(resolve, 1000))
    })`
  const { execPath } = process
  const child = execFile(execPath, ['--input-type=module', '--eval', script])
  t.teardown(() => child.kill('SIGKILL'))
  let stdout = ''
  // Which of the two it is depends on whether one more signal comes in between.
  const ended = new Promise((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)))
  let asked = 0
  child.stdout?.on('data', (text) => {
    stdout += text
    // The echo comes with the first.
    if (stdout === 'ready\n') for (; asked < 2; asked++) child.kill('SIGINT')
    if (stdout.endsWith('asked\n')) again.refresh()
  })
  const again = setInterval(() => {
    if (stdout.includes('asked')) asked += Number(child.kill('SIGINT'))
  }, 50)
  t.ok([130, 'SIGINT'].includes((await ended) as number))
  clearInterval(again)
  t.equal(stdout, 'ready\nasked\n')
  t.ok(asked > 3, 'what came soon after the first was disregarded')
})

test('when a command is over, signals end the process as before', async (t) => {
  const before = process.listenerCount('SIGINT')
  const work = async () => t.equal(process.listenerCount('SIGINT'), before + 1)
  await doLongWork({ describe: () => 'go on' }, work)
  t.equal(process.listenerCount('SIGINT'), before)
  t.equal(new Interrupted('SIGTERM').exitCode, 143)
})
