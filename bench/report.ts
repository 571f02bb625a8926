// The results as people read them: a text table, and Markdown.
import type { Row } from './findings.ts'
import { type Goal, isMet } from './goals.ts'

export type Report = {
  date: string
  quick: boolean
  /** Whether no scenario failed. */
  complete: boolean
  machine: Record<string, string>
  /** How many slices were measured, and how many of them others disturbed. */
  slices: { taken: number; rejected: number; used: number }
  /** Seconds that each scenario took. */
  seconds: Record<string, number>
  rows: Row[]
  goals: Goal[]
  notes: string[]
  /** What the README says of it. */
  summary: string
}

const legend =
  'Figures are medians over the quiet slices; "least" and "ratio" are the least of any slice, and the least beside the ' +
  "bare server's least, with the median of the ratios within a round in parentheses. CPU is the processor time of the " +
  'server process with all its threads; sleeps are how often, per request, the server and the load generator gave the ' +
  'processor up and had to be woken, with the processor time of the latter.'

type Table = { head: string[]; rows: string[][] }

/** The machine, and both tables as aligned text. */
export function toText(report: Report): string {
  const tables = [figures(report.rows), goals(report.goals)].map(alignTable)
  return [machineLines(report).join('\n'), ...tables].join('\n\n')
}

/** Both tables in Markdown, with the machine and the date. */
export function toMarkdown(report: Report): string {
  const notes = report.notes.map((note) => `\n${note}\n`)
  return [
    `# Benchmark of ${report.date}${report.quick ? ' (quick: for orientation only)' : ''}\n`,
    `${machineLines(report).join('\n')}\n`,
    `${markdownTable(figures(report.rows))}\n`,
    `${markdownTable(goals(report.goals))}\n`,
    `${legend} Repeat it with \`npm run bench\`.`,
    ...notes,
  ]
    .join('\n')
    .trimEnd()
    .concat('\n')
}

function machineLines({ machine }: Report): string[] {
  return Object.entries(machine).map(([name, value]) => `- ${name}: ${value}`)
}

function figures(rows: Row[]): Table {
  return {
    head: [
      'Work',
      'Server',
      'CPU µs/request',
      'least',
      'requests/s',
      'p50 ms',
      'p99 ms',
      'MiB',
      'sleeps',
      "client's",
      'its CPU µs',
      'CPU ratio to bare',
    ],
    rows: rows.map((row) => [
      row.work,
      row.server,
      format(row.cpuUs),
      format(row.leastCpuUs),
      format(row.perSecond),
      format(row.p50Ms),
      format(row.p99Ms),
      row.mib === undefined ? '' : format(row.mib),
      format(row.sleeps),
      format(row.clientSleeps),
      format(row.clientCpuUs),
      row.ratio === undefined ? '' : `${format(row.ratio)} (${format(row.medianRatio ?? Number.NaN)})`,
    ]),
  }
}

function goals(all: Goal[]): Table {
  return {
    head: ['Work', 'Figure', 'Reached', 'Beside', 'Target', 'Aim', ''],
    rows: all.map((goal) => {
      const sign = goal.more ? '≥' : '≤'
      return [
        goal.work,
        goal.figure,
        `${format(goal.value)}${goal.unit}`,
        goal.beside ? `${goal.beside.name} ${format(goal.beside.value)}${goal.unit}` : '',
        `${sign} ${goal.target}${goal.unit}`,
        `${goal.aim}${goal.unit}`,
        isMet(goal) ? 'met' : 'missed',
      ]
    }),
  }
}

/** Three digits that mean something. */
export function format(value: number): string {
  if (!Number.isFinite(value)) return 'n/a'
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2)
}

function alignTable({ head, rows }: Table): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)))
  return [head, widths.map((width) => '─'.repeat(width)), ...rows]
    .map((row) => row.map((cell, column) => pad(cell, widths[column] ?? 0, column)).join('  '))
    .join('\n')
}

function pad(cell: string, width: number, column: number): string {
  return column < 2 ? cell.padEnd(width) : cell.padStart(width)
}

function markdownTable({ head, rows }: Table): string {
  const rule = head.map((_, column) => (column < 2 ? '---' : '---:'))
  return [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
