// The deliberate defects of `npm run mutate` fit the source as it is: the run itself takes minutes, and is not here.
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { applyDefect } from '../../mutants/defect.ts'
import { defects } from '../../mutants/defects.ts'

const at = (file: string) => new URL(`../../${file}`, import.meta.url)

test('each defect has one place in the source, and a test that has to see it', async (t) => {
  t.equal(new Set(defects.map(({ breaks }) => breaks)).size, defects.length)
  for (const defect of defects) {
    const text = readFileSync(at(defect.file), 'utf8')
    t.not(applyDefect(defect, text), text, defect.breaks)
    t.not(defect.checks.length, 0)
    for (const { file, titles = [] } of defect.checks) {
      const tests = readFileSync(at(file), 'utf8')
      const texts = ['SQLite', 'PostgreSQL'].map((name) => tests.replaceAll(/\$\{(engine\.)?name\}/g, name))
      for (const title of titles)
        t.ok(
          texts.some((text) => text.includes(title)),
          `${file}: ${title}`,
        )
    }
  }
})

test('a defect whose place is not there, or there twice, is not put in', async (t) => {
  const defect = { breaks: 'nothing', file: 'a.ts', search: 'a', replacement: 'b', checks: [] }
  t.equal(applyDefect(defect, 'xay'), 'xby')
  t.throws(() => applyDefect(defect, 'xy'), /a\.ts has 0 places/)
  t.throws(() => applyDefect(defect, 'aa'), /a\.ts has 2 places/)
})
