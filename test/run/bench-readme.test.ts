// The README's figures are those of the latest benchmark.
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { summarize } from '../../bench/readme.ts'

function read(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
}

test('the README has the summary that the latest figures give', (t) => {
  const summary = summarize(JSON.parse(read('bench/results/latest.json')))
  const [, stated] = /<!-- bench -->\n(.*)\n<!-- \/bench -->/s.exec(read('README.md')) ?? []
  t.equal(stated, summary, 'to write it anew: node bench/readme.ts')
  t.match(summary, /µs of processor time/)
  t.end()
})
