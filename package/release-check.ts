// npm run release:check: all checks that are too slow for every change, in sequence, with a table of the results.
// Weekly, and before a release. Arguments select rows by name. The output of each row is kept in .tap/release.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, globSync, mkdirSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'

const directory = '.tap/release'
const node = 'package/node.js'
/** Runs tests with a time-out per file, and with full time-outs and sizes. */
const tap = [node, 'tap', '--jobs=1', '--timeout=1800', '--reporter=tap', '--test-env=TEST_LIMITS=full']

/** Test files that are shorter in `npm test`. */
const shortened = globSync('test/*/*.test.ts').filter((file) =>
  /support\/(full|short-limits)\.ts'/.test(readFileSync(file, 'utf8')),
)
const npm = (script: string) => ['npm', 'run', script]
const rows: [name: string, command: string[]][] = [
  ...globSync('test/*/*.slow.ts')
    .toSorted()
    .map((file): [string, string[]] => [basename(file, '.ts'), ['node', ...tap, file]]),
  ['full', ['node', ...tap, ...shortened.toSorted()]],
  ['coverage', npm('test:coverage')],
  ['contract', npm('contract')],
  ['arm64', ['node', node, 'package/arm64.ts']],
  ['image', npm('image')],
  ['bench', [...npm('bench'), '--', '--quick']],
  ['screenshots', npm('screenshots')],
]

type Outcome = 'passed' | 'failed' | 'skipped'

/** Runs a command with its output in a file. */
async function runRow(name: string, [program = '', ...args]: string[]): Promise<Outcome> {
  const file = `${directory}/${name}.log`
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, CI: '1' } })
  const log = createWriteStream(file)
  child.stdout.pipe(log, { end: false })
  child.stderr.pipe(log, { end: false })
  const [code] = await once(child, 'close')
  await new Promise((resolve) => log.end(resolve))
  if (code !== 0) return 'failed'
  const text = readFileSync(file, 'utf8')
  const hasRun = /^ +ok \d+(?!.*# SKIP)/m.test(text) || !/# SKIP|^SKIP/m.test(text)
  return hasRun ? 'passed' : 'skipped'
}

mkdirSync(directory, { recursive: true })
const chosen = process.argv.slice(2)
const table = ['| Check | Outcome | Seconds |', '|---|---|---|']
for (const [name, command] of rows) {
  if (chosen.length > 0 && !chosen.includes(name)) continue
  const startMs = performance.now()
  const outcome = await runRow(name, command)
  if (outcome === 'failed') process.exitCode = 1
  table.push(`| ${name} | ${outcome} | ${Math.round((performance.now() - startMs) / 1000)} |`)
  console.log(table.at(-1))
}
console.log(`\n${table.join('\n')}`)
