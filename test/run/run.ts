// Runs the suite: one process per file, one PostgreSQL for all of them, one line per file and the failures in full.
import { existsSync, globSync, rmSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { startServer } from '../support/postgres.ts'
import { checkContractCoverage, forgetContractCoverage } from './contract-coverage.ts'
import { Coverage } from './coverage.ts'
import { fastFiles, type Row, slowRows, slowTurns } from './parts.ts'
import { type Result, runFile } from './run-file.ts'
import { readTurn } from './turn.ts'

const help = `npm test [-- [options] FILE…]   without FILE: the whole suite, and the gates of a whole run

  --fast       SQLite only, without a browser and processes of its own: what takes long
  --slow       only what takes long: full time-outs, failing disks, kills; file by file, as promised times are checked
  --turn N     of what takes long a share; "auto" takes the one of the commit
  --list       only say what takes long
  --coverage   fail when lines, or 0.1 % of branches, of src/ and schemas/ were not reached
  --jobs N     run N files at once
  --help       show this`

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    fast: { type: 'boolean', default: false },
    slow: { type: 'boolean', default: false },
    turn: { type: 'string' },
    list: { type: 'boolean', default: false },
    coverage: { type: 'boolean', default: false },
    jobs: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

const jobs = Number(options.jobs ?? (options.slow ? 1 : availableParallelism() + 2))

/** What takes long: all of it, or the share of a turn. */
function chooseRows(): Row[] {
  const { turn } = options
  const chosen = turn === undefined ? undefined : readTurn(turn, slowTurns)
  return slowRows.filter((_, index) => chosen === undefined || index % slowTurns === chosen)
}

function chooseFiles(): string[] {
  if (positionals.length > 0) return positionals
  if (options.fast) return fastFiles
  return options.slow ? chooseRows().map(({ file }) => file) : globSync('test/*/*.test.ts').toSorted()
}

/** Full time-outs and sizes in a slow run, but for what is too large for a share of it. */
function limitsOf(file: string): NodeJS.ProcessEnv {
  const isSmall = slowRows.find((row) => row.file === file)?.inTurns === 'small'
  return options.slow && !(options.turn !== undefined && isSmall) ? { TEST_LIMITS: 'full' } : {}
}

function describeOutcome({ passed, failures, seconds }: Result): string {
  if (failures !== '') return 'failed'
  return passed === 0 ? 'skipped' : `${seconds.toFixed(0)} s`
}

/** One table of a slow run: what it is, how long it took, what it needs. */
function describeRows(results: Result[]): string {
  const lines = chooseRows().map(({ file, shows, needs }) => {
    const result = results.find((one) => one.file === file)
    const took = result === undefined ? '' : describeOutcome(result)
    return `| ${file} | ${shows} | ${took} | ${needs} |`
  })
  return ['| file | what it shows | took | needs |', '|---|---|---|---|', ...lines].join('\n')
}

async function runAll(files: string[], env: NodeJS.ProcessEnv): Promise<Result[]> {
  const results: Result[] = []
  // The longest first: at the end none is left that runs alone. What is long to read mostly takes long.
  const rest = files.toSorted((one, other) => statSync(other).size - statSync(one).size)
  const work = async () => {
    for (let file = rest.shift(); file !== undefined; file = rest.shift()) {
      const result = await runFile(file, { ...env, ...limitsOf(file) })
      results.push(result)
      console.log(describe(result))
    }
  }
  await Promise.all(Array.from({ length: jobs }, work))
  return results
}

function describe({ file, passed, failed, skipped, seconds, failures }: Result): string {
  const counts = [`${passed} passed`, ...(failed ? [`${failed} failed`] : [])]
  const line = `${failures ? 'not ok' : 'ok    '} ${file}  ${counts.join(', ')}, ${seconds.toFixed(1)} s`
  return [
    line,
    ...skipped.map((reason) => `       skipped: ${reason}`),
    ...(failures ? [failures] : []),
  ].join('\n')
}

/** The closing lines. False when something failed. */
function summarize(results: Result[], startMs: number): boolean {
  const bad = results.filter(({ failures }) => failures !== '')
  const sum = (count: (result: Result) => number) => results.reduce((all, one) => all + count(one), 0)
  const failed = Math.max(
    sum((one) => one.failed),
    bad.length,
  )
  console.log(`\n${results.length} files in ${((performance.now() - startMs) / 1000).toFixed(0)} s`)
  for (const { file } of bad) console.log(`failed: ${file}`)
  console.log(
    `${sum((one) => one.passed)} passed, ${failed} failed, ${sum((one) => one.skipped.length)} skipped`,
  )
  return bad.length === 0
}

/** The databases of a run of several files share one server; a single file starts its own when it needs one. */
async function withServer(
  files: string[],
  work: (env: NodeJS.ProcessEnv) => Promise<boolean>,
): Promise<boolean> {
  if (options.fast) return work({ TEST_ENGINE: 'SQLite' })
  if (files.length === 1) return work({})
  const server = await startServer()
  try {
    return await work({ TEST_POSTGRES_PORT: String(server.port) })
  } finally {
    server.destroy()
  }
}

async function main(): Promise<boolean> {
  const startMs = performance.now()
  const files = chooseFiles()
  const isWhole = positionals.length === 0 && !options.fast && !options.slow
  rmSync('.tap/failed', { force: true })
  if (isWhole) forgetContractCoverage()
  const coverage = options.coverage ? new Coverage() : undefined
  return withServer(files, async (server) => {
    const env = { ...server, ...coverage?.env }
    const results = await runAll(files, env)
    if (options.slow && positionals.length === 0) console.log(`\n${describeRows(results)}`)
    const gates = [
      ...(isWhole ? [checkContractCoverage()] : []),
      ...(coverage ? [coverage.check() || !isWhole] : []),
    ]
    return summarize(results, startMs) && gates.every(Boolean)
  })
}

const missing = positionals.find((file) => !existsSync(file))
if (options.help) console.log(help)
else if (options.list) console.log(describeRows([]))
else if (missing !== undefined) {
  console.error(`there is no file ${missing}`)
  process.exitCode = 2
} else process.exitCode = (await main()) ? 0 : 1
