// Completion in real shells: what Tab makes of a line that is half typed.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Test, test } from 'tap'
import { runCommand } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { cli } from '../support/imports.ts'
import { spawnCli } from '../support/service.ts'
import { skipWithout } from '../support/tools.ts'

/** What is typed, with Tab as a tab, and the arguments that the command then gets. */
const lines: [typed: string, args: string[]][] = [
  ['tok\tcr\t--na\tx', ['token', 'create', '--name', 'x']],
  ['token create --scope=plants:w\t', ['token', 'create', '--scope=plants:write']],
  ['openapi -o old\t--js\t', ['openapi', '-o', 'old plants.yaml', '--json']],
  ['openapi --output=old\t', ['openapi', '--output=old plants.yaml']],
  ['copy --from token --q\t', ['copy', '--from', 'token', '--quiet']],
  ['token revoke old\t', ['token', 'revoke', 'old']],
  ['import old\t', ['import', 'old plants.yaml']],
]

/** The script for a shell, in a directory with one file in it, and with plant-store in the path. */
async function prepare(t: Test, shell: string) {
  const directory = createDirectory(t)
  const { ended, output } = spawnCli(t, ['completion', shell], {}, directory)
  t.match(await ended, { code: 0 })
  const { stdout, stderr } = output()
  t.equal(stderr, '')
  writeFileSync(join(directory, 'script'), stdout)
  writeFileSync(join(directory, 'old plants.yaml'), '')
  const bin = join(createDirectory(t), 'bin')
  mkdirSync(bin)
  const program = `#!/bin/sh\nexec '${process.execPath}' '${cli}' "$@"\n`
  writeFileSync(join(bin, 'plant-store'), program, { mode: 0o755 })
  const env = { PATH: `${bin}${delimiter}${process.env.PATH}`, TERM: 'dumb' }
  return { cwd: directory, env, encoding: 'utf8' } as const
}

test('bash completes commands, options, values and files', { skip: skipWithout('bash') }, async (t) => {
  const options = await prepare(t, 'bash')
  // A shell that reads a pipe uses readline, too, when it is told to be interactive.
  const input = [
    'PS1=; source ./script; plant-store() { printf \'<%s>\' "$@"; echo; }',
    ...lines.map(([typed]) => `plant-store ${typed}`),
  ]
  const args = ['--norc', '--noprofile', '-i']
  const stdout = execFileSync('bash', args, {
    ...options,
    input: `${input.join('\n')}\n`,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const got = stdout.split('\n').filter((line) => line.startsWith('<'))
  for (const [n, [typed, expected]] of lines.entries())
    t.equal(got[n], `<${expected.join('><')}>`, JSON.stringify(typed))
})

test('bash runs nothing that is in the line', { skip: skipWithout('bash') }, async (t) => {
  const options = await prepare(t, 'bash')
  const input = "source ./script\nplant-store copy --from $(touch made) '`touch made`' --t\t\u0003\n"
  execFileSync('bash', ['--norc', '--noprofile', '-i'], {
    ...options,
    input: input.replace('\u0003', '\u0015true'),
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  t.notOk(existsSync(join(options.cwd, 'made')))
})

test('fish completes the same', { skip: skipWithout('fish') }, async (t) => {
  const options = await prepare(t, 'fish')
  for (const [typed, expected] of lines) {
    const [line = ''] = typed.split(/\t$/)
    if (line.includes('\t') || line === typed) continue
    const script = `source ./script; complete -C ${JSON.stringify(`plant-store ${line}`)}`
    const found = execFileSync('fish', ['-c', script], options)
    const last = expected.at(-1) as string
    t.equal(found.split(/[\t\n]/)[0], last === 'old' ? '' : last, line)
  }
})

test('zsh reads its script', { skip: skipWithout('zsh') }, async (t) => {
  t.equal(execFileSync('zsh', ['-fn', 'script'], await prepare(t, 'zsh')), '')
})

test('a shell that is not known is refused', async (t) => {
  const run = (...args: string[]) => runCommand(['completion', ...args], {}, createDirectory(t))
  t.match(await run('tcsh'), { code: 2, stdout: '', stderr: /bash, zsh, fish/ })
  t.match(await run(), { code: 2, stdout: '', stderr: /missing required argument 'shell'/ })
})

test('the program says what a word can become, in the form of each shell', async (t) => {
  const cases: [shell: string, words: string[], stdout: RegExp | string][] = [
    ['bash', [''], /^serve\nconfig\ntoken\nimport\n[\s\S]*\ncompletion\nopenapi\nhelp\n$/],
    ['bash', ['token', 'r'], 'rotate\nrevoke\n'],
    ['bash', ['openapi', '-'], '--json\n-o\n--output\n--force\n-h\n--help\n'],
    ['bash', ['token', 'create', '--scope=plants:w'], '--scope=plants:write\n'],
    ['zsh', ['token', 'create', '--scope', ''], 'plants\\:read:\nplants\\:write:\n'],
    ['zsh', ['export', '--f'], /^--format:[^\n]+\n--force:replace FILE if it exists\n$/],
    ['fish', ['tok'], 'token\tIssue, list, rotate, revoke and explain access tokens.\n'],
    ['fish', ['help', 'to'], /^token\t/],
    ['fish', ['import', ''], '<file>\n'],
    ['fish', ['import', '--rejects='], '<file>\n'],
    ['fish', ['token', 'revoke', ''], ''],
    ['fish', ['copy', '--from', 'tok'], ''],
    ['bash', ['copy', '--from', 'token', '--q'], '--quiet\n'],
    ['bash', ['completion', 'z'], 'zsh\n'],
    ['bash', ['export', '--format', 'n'], 'ndjson\n'],
    ['bash', ['export', '--compress=z'], '--compress=zstd\n'],
    ['bash', ['serve', '--log-f'], '--log-format\n'],
    ['bash', ['serve', '--log-time', 'i'], 'iso\n'],
    ['fish', ['status', ''], ''],
  ]
  for (const [shell, words, expected] of cases) {
    const { code, stdout } = await runCommand(['completion', shell, '--', ...words], {}, createDirectory(t))
    t.equal(code, 0)
    if (typeof expected === 'string') t.equal(stdout, expected, words.join(' '))
    else t.match(stdout, expected, words.join(' '))
  }
})
