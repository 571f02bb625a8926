// docs/security.md: every row names what shows it, and that exists.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'

const root = fileURLToPath(new URL('../..', import.meta.url))
const rows = readFileSync(`${root}docs/security.md`, 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (Risk|Threat) /.test(line))
  .map((line) => line.split(' | '))

test('all ten risks are there, in their order', (t) => {
  const risks = rows.flatMap(([risk = '']) => /^\| (API\d+) /.exec(risk)?.[1] ?? [])
  t.same(
    risks,
    Array.from({ length: 10 }, (_, index) => `API${index + 1}`),
  )
  t.end()
})

test('every row names tests, each of which exists under that title', (t) => {
  for (const [threat = '', measure = '', shown = ''] of rows) {
    t.ok(measure.length > 0, threat)
    const named = [...shown.matchAll(/`(test\/[\w/.-]+\.ts)`: "([^"]+)"/g)]
    t.ok(named.length > 0, `${threat} is shown by a test`)
    t.equal(named.length, shown.split('`test/').length - 1, 'all of them are understood')
    for (const [, file = '', title = ''] of named) {
      const code = existsSync(root + file) ? readFileSync(root + file, 'utf8') : ''
      t.ok(hasTest(code, title), `${file}: ${title}`)
    }
  }
  t.end()
})

/** True when a test has this title, whole but for the `${name}: ` of an engine or the like before it. */
function hasTest(code: string, title: string): boolean {
  return [`'${title}'`, `\`${title}\``, `}: ${title}\``].some((literal) => code.includes(literal))
}
