// The parts of the suite name what there is, and CI runs each of them.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { fastFiles, slowRows, slowTurns } from './parts.ts'
import { readTurn } from './turn.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

test('the fast run is of files that are there', async (t) => {
  for (const file of fastFiles) t.ok(existsSync(join(root, file)), file)
})

test('the slow run has each slow file, and each that is smaller without it', async (t) => {
  const isSmaller = /^(import|const).*'\.\.?\/[a-z./]*(short-limits|full)\.ts'/m
  const files = globSync('test/*/*.test.ts', { cwd: root }).filter((file) => isSmaller.test(read(file)))
  const expected = [...globSync('test/*/*.slow.ts', { cwd: root }), ...files]
  t.same(slowRows.map(({ file }) => file).toSorted(), expected.toSorted())
})

test('each commit has a turn, and turns are spread', async (t) => {
  const turn = readTurn('auto', slowTurns)
  t.ok(turn >= 0 && turn < slowTurns, `${turn}`)
  t.equal(readTurn('25', slowTurns), 1)
})

test('CI runs each command that CONTRIBUTING names', async (t) => {
  const run = ['.ci/run', '.github/workflows/ci.yml', '.github/workflows/release.yml'].map(read).join('\n')
  const commands = [...read('CONTRIBUTING.md').matchAll(/^\| `(?:\w+=\S+ )?(npm (?:run )?[\w:]+)/gm)].map(
    ([, command]) => command as string,
  )
  t.ok(commands.length > 12, `${commands.length} commands`)
  for (const command of commands) t.ok(run.includes(command), command)
})
