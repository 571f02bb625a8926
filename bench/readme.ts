// The README's figures: the picture and five lines, written from the results. What is not in them is left out.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './bench.ts'
import { isMet } from './goals.ts'
import { format, type Report } from './report.ts'

const [begin, end] = ['<!-- bench -->', '<!-- /bench -->']
const list = 'GET ?limit=100, 32 connections'
const unchanged = 'GET ?limit=100 answered 304, 32 connections'
const add = 'POST, 64 connections'
const whole = 'whole list of 1,000,000 plants'

/** The text between the README's markers. */
export function describeSpeed(report: Report): string {
  const met = report.goals.filter(isMet).length
  const machine = report.machine.processor?.replace(/ \(.*\)/, '')
  return [
    `Measured on ${report.date}: ${machine}, the server pinned to one and the load to the other.`,
    '\n![Requests per second, beside a bare server, Express, Hono and json-server](bench/results/latest.svg)\n',
    ...lines(report).map((line) => `- ${line}`),
    `\n${met} of ${report.goals.length} goals are met; [bench/results/latest.md](bench/results/latest.md) has them all.`,
  ].join('\n')
}

/** Puts the text into the README. */
export function writeSpeed(report: Report): void {
  const path = join(root, 'README.md')
  const readme = readFileSync(path, 'utf8')
  writeFileSync(path, readme.replace(readSpeed(readme), `\n${describeSpeed(report)}\n`))
}

/** What stands between the markers now. Throws when they are not there. */
export function readSpeed(readme: string): string {
  const [from, to] = [readme.indexOf(begin), readme.indexOf(end)]
  if (from === -1 || to < from) throw new Error(`README.md has no ${begin} and ${end}`)
  return readme.slice(from + begin.length, to)
}

/** Each a sentence of parts, of which those with no figure are left out. */
function lines(report: Report): string[] {
  const { cpu, rate, goal, p50 } = makeReader(report)
  const sentences: [title: string, ...parts: (string | undefined)[]][] = [
    [
      'A page of 100 plants',
      cpu(list),
      goal(list, 'CPU per request / bare', (times) => `${times} of a bare \`node:http\` server`),
      goal(unchanged, 'CPU per request / bare', (times) => `${times} when the answer is 304`),
      rate(list),
      goal(list, 'requests/s / Express', (times) => `${times} as many as Express`),
    ],
    [
      'Adding a plant, fsync before the answer',
      cpu(add),
      goal(add, 'CPU per request / bare', (times) => `${times} of a bare server that stores nothing`),
      rate(add),
      goal(add, 'requests/s / Express', (times) => `${times} as many as Express with one INSERT each`),
    ],
    [
      'A second thread',
      goal(
        'GET ?limit=100, 64 connections, all processors',
        'requests/s / one thread',
        (times) => `GET ${times}`,
      ),
      goal('POST, 64 connections, all processors', 'requests/s / one thread', (times) => `POST ${times}`),
      goal('two threads', 'memory of the second', (mib) => `${mib} of memory`),
    ],
    [
      'A list of a million plants',
      p50(whole),
      goal(whole, 'wall time / file piped', (times) => `${times} of a file that is piped`),
      goal(whole, 'growth of memory', (mib) => `memory grows by ${mib}`),
      goal(`${whole} in zstd`, 'bytes / plain', (times) => `${times} of the bytes in zstd`),
    ],
    [
      'Start',
      goal('start', 'CPU / bare', (times) => `${times} of a bare server's processor time`),
      goal('at rest', 'memory / bare', (times) => `${times} of its memory at rest`),
    ],
  ]
  return sentences.flatMap(([title, ...parts]) => {
    const known = parts.filter((part) => part !== undefined)
    return known.length > 0 ? `**${title}**: ${known.join(', ')}.` : []
  })
}

function makeReader({ rows, goals }: Report) {
  const row = (work: string) => rows.find((one) => one.work === work && one.server === 'Plant Store')
  return {
    cpu(work: string): string | undefined {
      const found = row(work)
      return found && `${format(found.cpuUs)} µs of processor time`
    },
    rate(work: string): string | undefined {
      const found = row(work)
      return found && `${format(found.perSecond)} requests/s on one core`
    },
    p50(work: string): string | undefined {
      const found = row(work)
      return found && `${format(found.p50Ms)} ms`
    },
    goal(work: string, figure: string, say: (value: string) => string): string | undefined {
      const found = goals.find((one) => one.work === work && one.figure === figure)
      return found && say(`${format(found.value)}${found.unit === '×' ? ' ×' : found.unit}`)
    },
  }
}
