// The results in short: the picture and five lines, for the README. What was not measured is left out.
import { isMet } from './goals.ts'
import { format, type Report } from './report.ts'

const list = 'GET ?limit=100, 32 connections'
const unchanged = 'GET ?limit=100 answered 304, 32 connections'
const add = 'POST, 64 connections'
const whole = 'whole list of 1,000,000 plants'
const [twoGet, twoAdd] = [
  'GET ?limit=100, 64 connections, all processors',
  'POST, 64 connections, all processors',
]
const [cpu, rate, time] = ['CPU per request / bare', 'requests/s / Express', 'requests/s / one thread']

/** A word on the machine, the picture, the lines, and how many goals are met. */
export function summarize(report: Omit<Report, 'summary'>): string {
  const met = report.goals.filter(isMet).length
  const { processor, pinned } = report.machine
  const place = pinned === 'no' ? 'nothing pinned' : pinned
  return [
    `Measured on ${report.date}: ${processor?.replace(/ \(.*\)/, '')}; ${place}.`,
    '\n![Requests per second, beside a bare server, Express, Hono and json-server](bench/results/latest.svg)\n',
    ...describeWorks(report),
    `\n${met} of ${report.goals.length} goals are met; [bench/results/latest.md](bench/results/latest.md) has them all.`,
  ].join('\n')
}

/** One line for each piece of work: its parts, without those that have no figure. */
function describeWorks(report: Omit<Report, 'summary'>): string[] {
  const { row, goal } = makeReader(report)
  const works: Record<string, (string | undefined)[]> = {
    'A page of 100 plants': [
      row(list, 'cpuUs', 'µs of processor time'),
      goal(list, cpu, 'that of a bare `node:http` server'),
      goal(unchanged, cpu, 'when the answer is 304'),
      row(list, 'perSecond', 'per second on one core'),
      goal(list, rate, 'what Express does'),
    ],
    'Adding a plant, with an fsync before the answer': [
      row(add, 'cpuUs', 'µs of processor time'),
      goal(add, cpu, 'that of a bare server that stores nothing'),
      row(add, 'perSecond', 'per second on one core'),
      goal(add, rate, 'what Express does'),
    ],
    'Two threads on two cores, with the load beside them': [
      goal(twoGet, time, 'the lists per second of one'),
      goal(twoAdd, time, 'the additions'),
      goal('two threads', 'memory of the second', 'more memory'),
    ],
    'A list of a million plants': [
      row(whole, 'p50Ms', 'ms'),
      goal(whole, 'wall time / file piped', 'a file that is piped'),
      goal(whole, 'growth of memory', 'more memory while it is read'),
      goal(`${whole} in zstd`, 'bytes / plain', 'the bytes in zstd'),
    ],
    'The start': [
      goal('start', 'CPU / bare', 'the processor time of a bare server'),
      goal('at rest', 'memory / bare', 'its memory at rest'),
    ],
  }
  return Object.entries(works).flatMap(([title, parts]) => {
    const known = parts.filter((part) => part !== undefined)
    return known.length > 0 ? `- **${title}**: ${known.join('; ')}.` : []
  })
}

/** Says a figure in words; undefined when it was not measured. */
function makeReader({ rows, goals }: Omit<Report, 'summary'>) {
  return {
    row(work: string, figure: 'cpuUs' | 'perSecond' | 'p50Ms', words: string): string | undefined {
      const found = rows.find((row) => row.work === work && row.server === 'Plant Store')
      return found && `${format(found[figure])} ${words}`
    },
    goal(work: string, figure: string, words: string): string | undefined {
      const found = goals.find((goal) => goal.work === work && goal.figure === figure)
      return found && `${format(found.value)} ${found.unit.trim()} ${words}`
    },
  }
}
