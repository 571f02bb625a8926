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

/** Where `npm` does nothing, but says what it was told, and never ends when that holds `word`. */
function playNpm(directory: string, word: string): void {
  const said = `echo "$*" >> '${join(directory, 'said')}'`
  const hang = `case "$*" in *${word}*) echo $$ > '${join(directory, word)}'; sleep 600;; esac`
  writeFileSync(join(directory, 'npm'), `#!/bin/sh\n${said}\n${hang}\n`, { mode: 0o755 })
}

function begin(t: { teardown: (work: () => void) => void }, directory: string) {
  const env = { ...process.env, PATH: `${directory}${delimiter}${process.env.PATH}`, TMPDIR: directory }
  const child = spawn(script, { env, stdio: 'ignore' })
  noteProcess(child)
  t.teardown(() => child.kill('SIGKILL'))
  return { child, ended: once(child, 'exit') }
}

test('.ci/run comes to its end, and runs each part', { skip }, async (t) => {
  const directory = createDirectory(t)
  playNpm(directory, 'nothing')
  t.same(await begin(t, directory).ended, [0, null])
  const said = readFileSync(join(directory, 'said'), 'utf8')
  for (const part of [
    /^(test\nrun test:slow -- --turn auto|run test:coverage)$/m,
    'mutate',
    'contract',
    'matrix',
  ])
    t.match(said, part)
  t.same(readdirSync(directory).toSorted(), ['npm', 'said'], 'and leaves no file')
})

for (const word of ['test', 'mutate'])
  test(`.ci/run that is ended during ${word} leaves no job behind`, { skip }, async (t) => {
    const directory = createDirectory(t)
    playNpm(directory, word)
    const { child, ended } = begin(t, directory)
    await until(() => existsSync(join(directory, word)))
    const pids = descendantsOf(child.pid as number)
    t.ok(pids.length > 0)
    child.kill('SIGTERM')
    t.same(await ended, [143, null])
    await until(() => !pids.some(isRunning))
    t.same(readdirSync(directory).toSorted(), [word, 'npm', 'said'].toSorted(), 'nor a file')
  })
