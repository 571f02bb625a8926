// .ci/run that is ended takes along what it has begun. npm itself is played by a script: what it runs is shown elsewhere.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { test } from 'tap'
import { createDirectory } from '../support/engines.ts'
import { noteProcess } from '../support/leftovers.ts'
import { descendantsOf, isRunning } from '../support/processes.ts'
import { findProgram } from '../support/tools.ts'
import { until } from '../support/until.ts'

const script = join(import.meta.dirname, '../../.ci/run')
const skip = findProgram('bash') === undefined && 'it needs bash'

/** Where `npm` does nothing, but says what it was told, and never ends when that holds `word`; `turn`: of the commit. */
function play(directory: string, turn: number, word: string): void {
  const write = (name: string, text: string) =>
    writeFileSync(join(directory, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  const said = `echo "$*" >> '${join(directory, 'said')}'`
  write('npm', `${said}\ncase "$*" in *${word}*) echo $$ > '${join(directory, word)}'; sleep 600;; esac`)
  write('git', `echo ${String(turn).padStart(7, '0').padEnd(40, '0')}`)
}

function begin(t: { teardown: (work: () => void) => void }, directory: string) {
  const env = { ...process.env, PATH: `${directory}${delimiter}${process.env.PATH}`, TMPDIR: directory }
  const child = spawn(script, { env, stdio: 'ignore' })
  noteProcess(child)
  t.teardown(() => child.kill('SIGKILL'))
  return { child, ended: once(child, 'exit') }
}

/** What a run does in its turn; the first seven digits of the hash say which it is. */
const turns = [
  ['run test:coverage', 'run test:fast'],
  ['test', 'run test:slow -- --turn auto'],
  ['test', 'test -- test/service/matrix.slow.ts', 'run mutate -- --turn auto --jobs 1', 'run contract'],
  ['run test:coverage', 'run build'],
]
const always = ['ci', 'run check', 'run openapi', 'run cli-docs', 'run client']

for (const [turn, parts] of turns.entries())
  test(`.ci/run comes to its end, and runs each part of turn ${turn}`, { skip }, async (t) => {
    const directory = createDirectory(t)
    play(directory, turn, 'nothing')
    t.same(await begin(t, directory).ended, [0, null])
    const said = readFileSync(join(directory, 'said'), 'utf8').trim().split('\n')
    t.same(said.toSorted(), [...always, ...parts].toSorted())
    t.same(readdirSync(directory).toSorted(), ['git', 'npm', 'said'], 'and leaves no file')
  })

for (const [turn, word] of [
  [1, 'slow'],
  [2, 'mutate'],
] as const)
  test(`.ci/run that is ended during ${word} leaves no job behind`, { skip }, async (t) => {
    const directory = createDirectory(t)
    play(directory, turn, word)
    const { child, ended } = begin(t, directory)
    await until(() => existsSync(join(directory, word)))
    const pids = descendantsOf(child.pid as number)
    t.ok(pids.length > 0)
    child.kill('SIGTERM')
    t.same(await ended, [143, null])
    await until(() => !pids.some(isRunning))
    t.same(readdirSync(directory).toSorted(), ['git', 'npm', 'said', word].toSorted(), 'nor a file')
  })
