// The README's figures are those of the latest benchmark.
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { summarize } from '../../bench/report.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

test('the README has the figures of the latest benchmark', async (t) => {
  const [, stated] = /<!-- bench -->\n(.*)\n<!-- \/bench -->/s.exec(read('README.md')) ?? []
  t.equal(stated, summarize(JSON.parse(read('bench/results/latest.json'))))
})
