// The README's figures, written from the results that are kept: `npm run bench` does it, and `node bench/readme.ts` by
// itself when only the words have changed.
import { readFileSync, writeFileSync } from 'node:fs'
import type { Report } from './report.ts'
import { summarize } from './summary.ts'

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

if (import.meta.main) {
  const report: Report = JSON.parse(readFileSync(latestFile, 'utf8'))
  const summary = summarize(report)
  writeFileSync(latestFile, `${JSON.stringify({ ...report, summary }, null, 2)}\n`)
  writeReadme(summary)
}
