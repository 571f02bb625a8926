// Help, and the hints for refused arguments.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { test } from 'tap'
import { buildProgram } from '../../src/cli/program.ts'
import { runCommand } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

function listWords(command: Command, words: string[] = []): string[][] {
  return [words, ...command.commands.flatMap((child) => listWords(child, [...words, child.name()]))]
}

test('every command has a help text of at most 80 columns', async (t) => {
  const program = await buildProgram()
  for (const words of listWords(program)) {
    const { code, stdout, stderr } = await runCommand([...words, '--help'])
    t.match({ code, stderr }, { code: 0, stderr: '' }, words.join(' '))
    t.ok(stdout.startsWith(`Usage: ${['plant-store', ...words].join(' ')}`), words.join(' '))
    for (const line of stdout.split('\n')) t.ok(line.length <= 80, line)
  }
  const { stdout } = await runCommand(['--help'])
  for (const { name } of program.commands.map((command) => ({ name: command.name() }))) t.match(stdout, name)
  t.match(stdout, /DATABASE_URL[\s\S]*Exit codes/)
  t.same(await runCommand(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' })
})

const usage: [args: string, hint: RegExp][] = [
  ['', /Usage: plant-store/],
  ['srve', /unknown command 'srve'[\s\S]*Did you mean serve/],
  ['help nothing', /Usage/],
  ['--nothing', /unknown option '--nothing'[\s\S]*--help/],
  ['serve --prot 1', /unknown option '--prot'[\s\S]*--help/],
  ['serve --acess-tokens=secret', /unknown option '--acess-tokens=\*\*\*'/],
  ['serve now', /too many arguments[\s\S]*--help/],
  ['token', /Usage: plant-store token/],
  ['token craete', /unknown command 'craete'[\s\S]*Did you mean create/],
  ['token create', /--name/],
  [`token create --name ${'🌱'.repeat(101)}`, /1 to 100 characters/],
  ['token create --name \u00a0', /1 to 100 characters/],
  ['token create --name a\nb', /no control characters/],
  ['token create --name a\u009bb', /no control characters/],
  ['token create --name a --scope plants', /plants:read, plants:write/],
  ['token create --name a --expires soon', /such as 90d/],
  ...['2001-01-01', '2100-02-30', '2100-1-31', '2100-01-31T12:00'].map((time): [string, RegExp] => [
    `token create --name a --expires ${time}`,
    /future date/,
  ]),
  ['token revoke', /missing required argument 'token'/],
  ['import', /missing required argument 'file'/],
  ['import - --map colour=x', /^error: .*--map/],
  ['import - --map colour', /^error: .*--map/],
  ['import - --map name=x --map name=y', /^error: .*--map/],
  ['import - --delimiter ;;', /^error: .*--delimiter/],
  ['import - --delimiter "', /^error: .*--delimiter/],
  [`import - --quote '`, /^error: .*--quote/],
]

test('refuses invalid arguments with a hint and exit code 2', async (t) => {
  for (const [line, hint] of usage) {
    const directory = createDirectory(t)
    const { code, stdout, stderr } = await runCommand(line === '' ? [] : line.split(' '), {}, directory)
    t.match({ code, stdout, stderr }, { code: 2, stdout: '', stderr: hint }, line)
    t.notMatch(stderr, /node:|\n {4}at |=secret/)
    t.notOk(existsSync(join(directory, 'data')), 'creates nothing')
  }
})
