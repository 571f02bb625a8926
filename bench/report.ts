// Formats the figures as Markdown tables: the full report, and the excerpt in the README.
import type { Slice } from './processes.ts'

/** `ratio`: CPU time divided by that of the bare server; null if the scenario has no bare server. */
export type Row = Slice & { scenario: string; work: string; server: string; ratio: number | null }
export type Report = {
  date: string
  quick: boolean
  plants: number
  machine: Record<string, string>
  rows: Row[]
}

const legend =
  "CPU is the server's processor time, on all threads, per request, start or plant, in the best of several short runs. " +
  'Ratio compares it with the bare server. Rates and latencies are medians. MiB is the peak resident memory, or for a start, the memory at rest.'

/** Three significant digits. */
function format(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return ''
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(value >= 10 ? 1 : 2)
}

function toTable(rows: Row[]): string {
  const lines = rows.map(({ work, server, cpuUs, ratio, perSecond, p50Ms, p99Ms, mib }) => {
    return [work, server, ...[cpuUs, ratio, perSecond, p50Ms, p99Ms, mib].map(format)]
  })
  const head = ['Work', 'Server', 'CPU µs', 'Ratio', 'per second', 'p50 ms', 'p99 ms', 'MiB']
  const rule = head.map((_, column) => (column < 2 ? '---' : '--:'))
  return [head, rule, ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

export function toMarkdown({ date, quick, plants, machine, rows }: Report): string {
  const facts = Object.entries({ ...machine, 'large store': `${plants} plants` }).map(
    (fact) => `- ${fact.join(': ')}`,
  )
  const title = `# Benchmark of ${date}${quick ? ' (quick: for orientation only)' : ''}`
  return `${[title, facts.join('\n'), toTable(rows), legend].join('\n\n')}\n`
}

/** The block in the README: the operations, compared with the bare server and two peers. */
export function summarize({ date, machine, rows }: Report): string {
  const isShown = ({ scenario, server }: Row) =>
    ['page', '304', 'post'].includes(scenario) && !server.startsWith('Fastify')
  const shown = rows.filter(isShown)
  const where = `Measured on ${date} at commit ${machine.commit}: ${machine.processor}; ${machine.processors}.`
  return `${where}\n\n${toTable(shown)}\n\n${legend} [All figures](bench/results/latest.md).`
}
