// npm run bench: runs the scenarios one after the other, prints a table and writes it into bench/results.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createBench, root } from './bench.ts'
import { toSvg } from './chart.ts'
import type { Finding, Scenario } from './findings.ts'
import { pinMachine } from './machine.ts'
import { readOptions } from './options.ts'
import { killAll } from './processes.ts'
import { summarize, writeReadme } from './readme.ts'
import { makeReport, type Ran, type Report, toMarkdown } from './report.ts'
import { besideImport, besideLists, slowDisk } from './scenarios/beside.ts'
import { before, beforePostgres } from './scenarios/checkouts.ts'
import { codings } from './scenarios/codings.ts'
import { backup, exportFile, importFiles, importPostgres } from './scenarios/commands.ts'
import { postgres, wholeList } from './scenarios/lists.ts'
import { add, list, mixed, unchanged } from './scenarios/operations.ts'
import { jwt } from './scenarios/signed.ts'
import { start } from './scenarios/start.ts'
import { traces } from './scenarios/traced.ts'
import { accessLog, largeStore, lightLoad, threads } from './scenarios/variants.ts'
import { cold, wide } from './scenarios/wide-and-cold.ts'

/** All scenarios, in the order in which they run. */
const http = [
  list,
  unchanged,
  add,
  accessLog,
  mixed,
  threads,
  codings,
  lightLoad,
  jwt,
  traces,
  wide,
  cold,
  start,
]
const stores = [wholeList, besideLists, largeStore, slowDisk, postgres]
const commands = [importFiles, importPostgres, exportFile, backup, besideImport]

const scenarios: Scenario[] = [...http, ...stores, ...commands, before, beforePostgres]

const options = readOptions(
  process.argv,
  scenarios.map(({ name }) => name),
)
const bench = createBench(options, pinMachine())
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end(130))

try {
  const { found, ...ran } = await runAll()
  bench.progress.clear()
  const seconds = Object.entries(ran.seconds).map(([name, count]) => `${name} ${count}`)
  const report = makeReport(bench, found, ran)
  console.log(`\n${toMarkdown(report)}\nSeconds: ${seconds.join(', ')}`)
  write(report, ran.failed.length === 0)
  end(ran.failed.length === 0 ? 0 : 1)
} catch (error) {
  bench.progress.clear()
  console.error(`bench: ${(error as Error).message}`)
  end(1)
}

async function runAll(): Promise<Ran & { found: Finding[] }> {
  const found: Finding[] = []
  const ran: Ran = { seconds: {}, skipped: [], failed: [] }
  const chosen = scenarios.filter(({ name }) => options.only.includes(name))
  for (const [index, { name, title, unable, run }] of chosen.entries()) {
    bench.progress.begin(index, chosen.length, title)
    bench.slices.begin(options.repeatMs.scenario)
    const start = performance.now()
    const reason = unable?.(bench)
    if (reason !== undefined) {
      ran.skipped.push(`Not measured: ${title} (${reason}).`)
      continue
    }
    try {
      found.push(...(await run(bench)))
    } catch (error) {
      ran.failed.push(`Failed: ${title} (${(error as Error).message}).`)
    }
    await bench.stopServers()
    ran.seconds[name] = Math.round((performance.now() - start) / 1000)
  }
  return { ...ran, found }
}

/** Only a full run becomes the result that is kept: what has failed would be missing from it. */
function write(report: Report, isComplete: boolean): void {
  const { quick, only, output = join(root, 'bench/results') } = options
  const isFull = isComplete && only.length === scenarios.length
  const file = join(output, quick ? 'quick' : isFull ? 'latest' : 'partial')
  mkdirSync(output, { recursive: true })
  writeFileSync(`${file}.json`, `${JSON.stringify(report, null, 2)}\n`)
  writeFileSync(`${file}.md`, toMarkdown(report))
  writeFileSync(`${file}.svg`, toSvg(report.rows))
  if (isFull && !quick && options.output === undefined) writeReadme(summarize(report))
  console.log(`Written to ${file}.json, .md and .svg`)
}

function end(code: number): never {
  killAll()
  bench.clean()
  process.exit(code)
}
