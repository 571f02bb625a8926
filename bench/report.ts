// The results as people read them: tables in Markdown.
import type { Bench } from './bench.ts'
import { describeUnsteadiness, type Finding } from './findings.ts'
import { isMet } from './goals.ts'
import { describeMachine } from './machine.ts'

export type Report = ReturnType<typeof makeReport>

/** `seconds`: how long each scenario took. */
export function makeReport(bench: Bench, found: Finding[], ran: Ran) {
  const rows = found.flatMap(({ work, rows = [] }) => rows.map((row) => ({ work, ...row })))
  const goals = found.flatMap(({ work, goals }) => goals.map((goal) => ({ work, ...goal })))
  const notes = [bench.slices.describe(), describeUnsteadiness(rows), ...ran.skipped, ...ran.failed]
  return {
    date: new Date().toISOString().slice(0, 10),
    quick: bench.options.quick,
    machine: describeMachine(bench.pins),
    slices: bench.slices.counts,
    seconds: ran.seconds,
    rows,
    goals,
    notes: notes.filter((note) => note !== undefined),
  }
}

export type Ran = { seconds: Record<string, number>; skipped: string[]; failed: string[] }

const legend =
  'Figures are medians over the quiet slices; "least" and "ratio" are the least of any slice, and the least beside the ' +
  "bare server's least, with the median of the ratios within a round in parentheses. CPU is the processor time of the " +
  'server process with all its threads.'

type Columns<T> = Record<string, (line: T) => string>

/** The machine, both tables and the notes in Markdown, aligned so that a terminal can show it as it is. */
export function toMarkdown(report: Report): string {
  const facts = Object.entries(report.machine).map(([name, value]) => `- ${name}: ${value}`)
  return `${[
    `# Benchmark of ${report.date}${report.quick ? ' (quick: for orientation only)' : ''}`,
    facts.join('\n'),
    formatTable(rowColumns, report.rows),
    formatTable(goalColumns, report.goals),
    `${legend} Repeat it with \`npm run bench\`.`,
    ...report.notes,
  ].join('\n\n')}\n`
}

const rowColumns: Columns<Report['rows'][number]> = {
  Work: ({ work }) => work,
  Server: ({ server }) => server,
  'CPU µs/request': ({ cpuUs }) => format(cpuUs),
  least: ({ leastCpuUs }) => format(leastCpuUs),
  'requests/s': ({ perSecond }) => format(perSecond),
  'p50 ms': ({ p50Ms }) => format(p50Ms),
  'p99 ms': ({ p99Ms }) => format(p99Ms),
  MiB: ({ mib }) => (mib === undefined ? '' : format(mib)),
  'CPU ratio to bare': ({ ratio, medianRatio = Number.NaN }) =>
    ratio === undefined ? '' : `${format(ratio)} (${format(medianRatio)})`,
}

const goalColumns: Columns<Report['goals'][number]> = {
  Work: ({ work }) => work,
  Figure: ({ figure }) => figure,
  Reached: ({ value, unit }) => format(value) + unit,
  Beside: ({ beside, unit }) => (beside ? `${beside.name} ${format(beside.value)}${unit}` : ''),
  Target: ({ more, target, unit }) => `${more ? '≥' : '≤'} ${target}${unit}`,
  Aim: ({ aim, unit }) => `${aim}${unit}`,
  '': (goal) => goal.unjudged ?? (isMet(goal) ? 'met' : 'missed'),
}

/** Three digits that mean something. */
export function format(value: number): string {
  if (!Number.isFinite(value)) return 'n/a'
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2)
}

function formatTable<T>(columns: Columns<T>, lines: T[]): string {
  const head = Object.keys(columns)
  const rows = lines.map((line) => Object.values(columns).map((column) => column(line)))
  const widths = head.map((name, column) =>
    Math.max(3, name.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const rule = widths.map((width, column) => (column < 2 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  const pad = (cell: string, column: number) =>
    column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
  return [head, rule, ...rows].map((row) => `| ${row.map(pad).join(' | ')} |`).join('\n')
}
