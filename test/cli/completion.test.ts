// Completion in real shells: what Tab makes of a line that is half typed.
import { execFileSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { formatZsh } from '../../src/cli/completion/zsh.ts'
import { runCommand } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { spawnCli } from '../support/service.ts'
import { skipWithout } from '../support/tools.ts'

/** What is typed, with Tab as a tab, and the arguments that the command then gets. */
const lines: [typed: string, args: string[]][] = [
  ['tok\tcr\t--na\tx', ['token', 'create', '--name', 'x']],
  ['token create --scope plants:w\t', ['token', 'create', '--scope', 'plants:write']],
  ['token create --scope=plants:w\t', ['token', 'create', '--scope=plants:write']],
  ['openapi -o old\t--js\t', ['openapi', '-o', 'old plants.yaml', '--json']],
  ['openapi --output=old\t', ['openapi', '--output=old plants.yaml']],
  ['copy --fr\told\t --t\t', ['copy', '--from', 'old', '--to']],
  ['copy --from token --q\t', ['copy', '--from', 'token', '--quiet']],
  ['completion z\t', ['completion', 'zsh']],
  ['token revoke old\t', ['token', 'revoke', 'old']],
  ['export --format n\t', ['export', '--format', 'ndjson']],
  ['export --compress=z\t', ['export', '--compress=zstd']],
  ['help tok\t', ['help', 'token']],
  ['serve --log-f\tj\t', ['serve', '--log-format', 'json']],
  ['serve --log-time i\t', ['serve', '--log-time', 'iso']],
  ['import old\t', ['import', 'old plants.yaml']],
]

/** The script for a shell, in a directory with one file in it. */
async function prepare(t: Test, shell: string) {
  const directory = createDirectory(t)
  const { ended, output } = spawnCli(t, ['completion', shell], {}, directory)
  t.match(await ended, { code: 0 })
  const { stdout, stderr } = output()
  t.equal(stderr, '')
  writeFileSync(join(directory, 'script'), stdout)
  writeFileSync(join(directory, 'old plants.yaml'), '')
  return directory
}

test('bash completes commands, options, values and files', { skip: skipWithout('bash') }, async (t) => {
  const cwd = await prepare(t, 'bash')
  // A shell that reads a pipe uses readline, too, when it is told to be interactive.
  const input = [
    'PS1=; source ./script; plant-store() { printf \'<%s>\' "$@"; echo; }',
    ...lines.map(([typed]) => `plant-store ${typed}`),
  ]
  const args = ['--norc', '--noprofile', '-i']
  const stdout = execFileSync('bash', args, {
    cwd,
    input: `${input.join('\n')}\n`,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, TERM: 'dumb' },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const got = stdout.split('\n').filter((line) => line.startsWith('<'))
  for (const [n, [typed, expected]] of lines.entries())
    t.equal(got[n], `<${expected.join('><')}>`, JSON.stringify(typed))
})

test('bash runs nothing that is in the line', { skip: skipWithout('bash') }, async (t) => {
  const cwd = await prepare(t, 'bash')
  const input = "source ./script\nplant-store copy --from $(touch made) '`touch made`' --t\t\u0003\n"
  execFileSync('bash', ['--norc', '--noprofile', '-i'], {
    cwd,
    input: input.replace('\u0003', '\u0015true'),
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  t.notOk(existsSync(join(cwd, 'made')))
})

test('fish completes the same', { skip: skipWithout('fish') }, async (t) => {
  const cwd = await prepare(t, 'fish')
  for (const [typed, expected] of lines) {
    const [line = ''] = typed.split(/\t$/)
    if (line.includes('\t') || line === typed) continue
    const script = `source ./script; complete -C ${JSON.stringify(`plant-store ${line}`)}`
    const found = execFileSync('fish', ['-c', script], { cwd, encoding: 'utf8' })
    const last = expected.at(-1) as string
    t.equal(found.split(/[\t\n]/)[0], last === 'old' ? '' : last, line)
  }
})

test('zsh reads its script', { skip: skipWithout('zsh') }, async (t) => {
  const cwd = await prepare(t, 'zsh')
  t.equal(execFileSync('zsh', ['-fn', 'script'], { cwd, encoding: 'utf8' }), '')
})

test('special characters of zsh in a name or a description are quoted', async (t) => {
  const commands = [{ name: 'a:b', description: "what's in it" }]
  const script = formatZsh([{ path: '', commands, options: [], values: undefined }])
  t.match(script, String.raw`commands=('a\:b:what'\''s in it')`)
})

test('a shell that is not known is refused, and the scripts name every command', async (t) => {
  const run = (...args: string[]) => runCommand(['completion', ...args], {}, createDirectory(t))
  t.match(await run('tcsh'), { code: 2, stdout: '', stderr: /bash, zsh, fish/ })
  t.match(await run(), { code: 2, stdout: '', stderr: /missing required argument 'shell'/ })
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout } = await run(shell)
    t.equal(code, 0)
    for (const name of [
      'serve',
      'token',
      'import',
      'export',
      'backup',
      'restore',
      'verify',
      'status',
      'completion',
    ])
      t.match(stdout, new RegExp(`\\b${name}\\b`))
  }
})
