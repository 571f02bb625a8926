// The results in short, the picture and five lines, for the README. `npm run bench` writes them there, and `node
// bench/readme.ts` from the results that are kept, when only the words have changed. What was not measured is left out.
import { readFileSync, writeFileSync } from 'node:fs'
import { isMet } from './goals.ts'
import { format, type Report } from './report.ts'
import type { Figure } from './rounds.ts'

const readmeFile = new URL('../README.md', import.meta.url)
const latestFile = new URL('./results/latest.json', import.meta.url)
const [begin, end] = ['<!-- bench -->', '<!-- /bench -->']

/** Puts a summary between the README's markers. Throws when they are not there. */
export function writeReadme(summary: string): void {
  const readme = readFileSync(readmeFile, 'utf8')
  const [from, to] = [readme.indexOf(begin), readme.indexOf(end)]
  if (from === -1 || to < from) throw new Error(`README.md has no ${begin} and ${end}`)
  writeFileSync(readmeFile, `${readme.slice(0, from + begin.length)}\n${summary}\n${readme.slice(to)}`)
}

/** A goal that was reached, or a figure of Plant Store's row, and the words that follow it. */
type Part = [work: string, figure: string, words: string]

const list = 'GET ?limit=100, 32 connections'
const unchanged = 'GET ?limit=100 answered 304, 32 connections'
const add = 'POST, 64 connections'
const both = '64 connections, all processors'
const whole = 'whole list of 1,000,000 plants'

const works: Record<string, Part[]> = {
  'A page of 100 plants': [
    [list, 'cpuUs', 'µs of processor time'],
    [list, 'CPU per request / bare', 'that of a bare `node:http` server'],
    [unchanged, 'CPU per request / bare', 'when the answer is 304'],
    [list, 'perSecond', 'per second on one core'],
    [list, 'requests/s / Express', 'what Express does'],
  ],
  'Adding a plant, with an fsync before the answer': [
    [add, 'cpuUs', 'µs of processor time'],
    [add, 'CPU per request / bare', 'that of a bare server that stores nothing'],
    [add, 'perSecond', 'per second on one core'],
    [add, 'requests/s / Express', 'what Express does'],
  ],
  'Two threads on two cores, with the load beside them': [
    [`GET ?limit=100, ${both}`, 'requests/s / one thread', 'the lists per second of one'],
    [`POST, ${both}`, 'requests/s / one thread', 'the additions'],
  ],
  'A list of a million plants': [
    [whole, 'p50Ms', 'ms'],
    [whole, 'wall time / file piped', 'a file that is piped'],
    [whole, 'growth of memory', 'more memory while it is read'],
    [`${whole} in zstd`, 'bytes / plain', 'the bytes in zstd'],
  ],
  'The start': [
    ['start', 'CPU / bare', 'the processor time of a bare server'],
    ['at rest', 'memory / bare', 'its memory at rest'],
  ],
}

const slower: Part[] = [
  [
    'GET ?limit=100 of pages that are not cached, 32 connections',
    'CPU per request / one page',
    'the processor time for a page that is not cached yet',
  ],
  [
    'GET ?limit=100, 64 connections, PostgreSQL',
    'requests/s / SQLite',
    "SQLite's lists per second on PostgreSQL",
  ],
  ['import of 1,000,000 plants, SQLite', 'time of CSV / sqlite3', 'the time of `sqlite3` for importing CSV'],
]

/** A word on the machine, the picture, the lines, and what is slower than its goal. */
export function summarize(report: Report): string {
  const { commit, processor, pinned } = report.machine
  return [
    `Measured on ${report.date} at commit ${commit}: ${processor.replace(/ \(.*\)/, '')}; ${pinned === 'no' ? 'nothing pinned' : pinned}.`,
    '\n![Requests per second, beside a bare server, Express, Hono and json-server](bench/results/latest.svg)\n',
    ...describeWorks(report),
    ...describeSlower(report),
    '\n[bench/results/latest.md](bench/results/latest.md) has all figures, with their goals.',
  ].join('\n')
}

/** One line per piece of work, without the parts that have no figure. */
function describeWorks(report: Report): string[] {
  return Object.entries(works).flatMap(([title, parts]) => {
    const known = parts.flatMap((part) => describePart(report, part))
    return known.length > 0 ? `- **${title}**: ${known.join('; ')}.` : []
  })
}

/** A line on those of `slower` whose goals are missed. */
function describeSlower(report: Report): string[] {
  const isMissed = ([work, figure]: Part) =>
    report.goals.some((goal) => goal.work === work && goal.figure === figure && !isMet(goal))
  const known = slower.filter(isMissed).flatMap((part) => describePart(report, part))
  return known.length > 0 ? [`- **Slower than it should be**: ${known.join('; ')}.`] : []
}

function describePart({ rows, goals }: Report, [work, figure, words]: Part): string[] {
  const goal = goals.find((one) => one.work === work && one.figure === figure)
  const row = rows.find((one) => one.work === work && one.server === 'Plant Store')
  if (goal) return [`${format(goal.value)} ${goal.unit.trim()} ${words}`]
  return row && figure in row ? [`${format(row[figure as Figure])} ${words}`] : []
}

if (import.meta.main) {
  writeReadme(summarize(JSON.parse(readFileSync(latestFile, 'utf8'))))
}
