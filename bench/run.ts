// npm run bench [-- --quick] [--only NAME]…: measures Plant Store beside bare node:http, other frameworks and sqlite3. Writes one
// JSON file, one Markdown table and the figures of the README.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, totalmem, type } from 'node:os'
import { parseArgs } from 'node:util'
import { describeCommit } from '../package/commit.ts'
import { pins, type Slice } from './processes.ts'
import { type Report, type Row, summarize, toMarkdown } from './report.ts'
import { type Options, type Scenario, scenarios } from './scenarios.ts'
import { stopPostgres } from './servers.ts'

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string', multiple: true } },
})
const { quick, only = scenarios.map(({ name }) => name) } = values
const options: Options = quick
  ? { rounds: 3, roundMs: 300, plants: 100_000 }
  : { rounds: 10, roundMs: 1000, plants: 1_000_000 }
const report: Report = {
  date: new Date().toISOString().slice(0, 10),
  quick,
  plants: options.plants,
  machine: {
    commit: describeCommit() ?? 'unknown',
    processor: `${cpus()[0]?.model.trim()}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`,
    system: `${type()}, Node ${process.version}, SQLite ${process.versions.sqlite}`,
    processors: `server on processor ${pins.server}, load on ${pins.load}`,
    load: `${loadavg()[0]?.toFixed(1)} at the start`,
  },
  rows: [],
}

/** Measures the contenders in turn, a slice per round, so that disturbances of the machine affect all of them. */
async function runScenario({ name, title, floor, rounds, start }: Scenario): Promise<Row[]> {
  const contenders = await start(options)
  const slices = contenders.map((): Slice[] => [])
  for (let round = 0; round <= Math.min(rounds ?? Infinity, options.rounds); round++)
    for (const [index, { take }] of contenders.entries()) {
      const slice = await take(options.roundMs)
      // The first round is a warm-up.
      if (round > 0) slices[index]?.push(slice)
    }
  for (const { stop } of contenders) await stop?.()
  const least = (index: number) => Math.min(...(slices[index] ?? []).map(({ cpuUs }) => cpuUs))
  return contenders.map((contender, index) => {
    const median = (figure: keyof Slice) => {
      const sorted = (slices[index] ?? []).map((slice) => slice[figure]).toSorted((a, b) => a - b)
      return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
    }
    const medians = {
      perSecond: median('perSecond'),
      p50Ms: median('p50Ms'),
      p99Ms: median('p99Ms'),
      mib: median('mib'),
    }
    const cpuUs = least(index)
    const ratio = floor ? cpuUs / least(0) : null
    return { scenario: name, work: title, server: contender.name, cpuUs, ratio, ...medians }
  })
}

try {
  for (const scenario of scenarios.filter(({ name }) => only.includes(name))) {
    console.error(scenario.title)
    report.rows.push(...(await runScenario(scenario)))
  }
} finally {
  await stopPostgres()
}
const isWhole = !quick && values.only === undefined
const directory = isWhole ? 'bench/results' : '.tap/bench'
mkdirSync(directory, { recursive: true })
writeFileSync(`${directory}/latest.json`, `${JSON.stringify(report, null, 2)}\n`)
writeFileSync(`${directory}/latest.md`, toMarkdown(report))
console.log(toMarkdown(report))
if (isWhole) {
  const readme = readFileSync('README.md', 'utf8')
  const block = /(?<=<!-- bench -->\n).*(?=\n<!-- \/bench -->)/s
  const updated = readme.replace(block, () => summarize(report))
  writeFileSync('README.md', updated)
}
