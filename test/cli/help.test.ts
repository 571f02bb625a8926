// Help is quick to come, and fits into a terminal of 80 columns.
import type { Command } from 'commander'
import { test } from 'tap'
import { buildProgram } from '../../src/cli/program.ts'
import { runCommand } from '../support/commands.ts'
import { spawnCli } from '../support/service.ts'

function listWords(command: Command, words: string[] = []): string[][] {
  return [words, ...command.commands.flatMap((child) => listWords(child, [...words, child.name()]))]
}

test('no line of any help is longer than 80 columns', async (t) => {
  for (const words of listWords(await buildProgram())) {
    const { code, stdout } = await runCommand([...words, '--help'])
    t.equal(code, 0, words.join(' '))
    for (const line of stdout.split('\n')) t.ok(line.length <= 80, line)
  }
})

test('the overview and the version load no command', async (t) => {
  for (const words of [['--help'], ['--version'], ['help'], ['status', '--help']]) {
    const NODE_DEBUG = 'esm'
    const { ended, output } = spawnCli(t, words, { NODE_DEBUG })
    t.match(await ended, { code: 0 })
    t.notMatch(output().stderr, /file:\S+\/cli\/commands\/serve\.ts/, words.join(' '))
  }
  const { stdout } = await runCommand(['help', 'import'])
  t.match(stdout, /^Usage: plant-store import /)
})
