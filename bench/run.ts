// npm run bench: runs the scenarios one after the other, prints a table and writes it into bench/results.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Bench, root } from './bench.ts'
import { toSvg } from './chart.ts'
import { describeUnsteadiness } from './findings.ts'
import { describeMachine, describeNeighbours, pinMachine } from './machine.ts'
import { type Options, readOptions } from './options.ts'
import { killAll } from './processes.ts'
import { Progress } from './progress.ts'
import { writeReadme } from './readme.ts'
import { type Report, toMarkdown, toText } from './report.ts'
import { scenarios } from './scenarios/index.ts'
import { summarize } from './summary.ts'

const options = readOptions(
  process.argv,
  scenarios.map(({ name }) => name),
)
const progress = new Progress()
const bench = new Bench(options, pinMachine(), progress)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end(130))

try {
  const report = await runAll()
  progress.clear()
  console.log(`\n${toText(report)}\n`)
  for (const note of report.notes) console.log(note)
  const seconds = Object.entries(report.seconds).map(([name, count]) => `${name} ${count}`)
  console.log(`Seconds: ${seconds.join(', ')}`)
  write(report)
  end(report.complete ? 0 : 1)
} catch (error) {
  progress.clear()
  console.error(`bench: ${(error as Error).message}`)
  end(1)
}

async function runAll(): Promise<Report> {
  const report: Omit<Report, 'summary'> = {
    date: new Date().toISOString().slice(0, 10),
    quick: options.quick,
    complete: true,
    machine: describeMachine(bench.pins),
    slices: { taken: 0, rejected: 0, used: 0 },
    seconds: {},
    rows: [],
    goals: [],
    notes: [describeNeighbours()].filter((note) => note !== undefined),
  }
  const chosen = scenarios.filter(({ name }) => options.only.includes(name))
  for (const [index, scenario] of chosen.entries()) {
    progress.begin(index, chosen.length, scenario.title)
    bench.slices.begin()
    const start = performance.now()
    const reason = await scenario.unable?.(bench)
    if (reason !== undefined) {
      report.notes.push(`Not measured: ${scenario.title} (${reason}).`)
      continue
    }
    try {
      const { rows, goals } = await scenario.run(bench)
      report.rows.push(...rows)
      report.goals.push(...goals)
    } catch (error) {
      report.notes.push(`Failed: ${scenario.title} (${(error as Error).message}).`)
      report.complete = false
    }
    await bench.stopServers()
    report.seconds[scenario.name] = Math.round((performance.now() - start) / 1000)
  }
  const { taken, rejected, used } = bench.slices
  report.slices = { taken, rejected, used }
  const notes = [bench.slices.describe(), describeUnsteadiness(report.rows)]
  report.notes.unshift(...notes.filter((note) => note !== undefined))
  return { ...report, summary: summarize(report) }
}

function write(report: Report): void {
  const directory = options.output ?? join(root, 'bench/results')
  const name = fileName(options, report)
  const file = join(directory, name)
  mkdirSync(directory, { recursive: true })
  writeFileSync(`${file}.json`, `${JSON.stringify(report, null, 2)}\n`)
  writeFileSync(`${file}.md`, toMarkdown(report))
  writeFileSync(`${file}.svg`, toSvg(report.rows))
  if (name === 'latest' && options.output === undefined) writeReadme(report.summary)
  console.log(`Written to ${file}.json, .md and .svg`)
}

/** Only a full run becomes the result that is kept: what has failed would be missing from it. */
function fileName({ quick, only }: Options, { complete }: Report): string {
  if (quick) return 'quick'
  return only.length < scenarios.length || !complete ? 'partial' : 'latest'
}

function end(code: number): never {
  killAll()
  bench.clean()
  process.exit(code)
}
