// The README's figures are those of the latest benchmark.
import { readFileSync } from 'node:fs'
import { test } from 'tap'

function read(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
}

test('the README has the summary of the latest results', (t) => {
  const { summary } = JSON.parse(read('bench/results/latest.json')) as { summary: string }
  const [, stated] = /<!-- bench -->\n(.*)\n<!-- \/bench -->/s.exec(read('README.md')) ?? []
  t.equal(stated, summary, 'to write it anew: node bench/readme.ts')
  t.match(summary, /µs of processor time/)
  t.end()
})
