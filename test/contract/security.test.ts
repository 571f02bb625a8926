// docs/security.md: every threat has tests that show what stops it, and they exist.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'

const root = fileURLToPath(new URL('../..', import.meta.url))
const [claims = '', shown = ''] = readFileSync(`${root}docs/security.md`, 'utf8').split(
  '### The tests that show it\n',
)
const threats = claims
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (Risk|Threat) /.test(line))
  .map((line) =>
    line
      .slice(2)
      .split(' | ')[0]
      ?.replace(/^(API\d+) .*/, '$1'),
  )

test('all ten risks are there, in their order', (t) => {
  const risks = threats.filter((threat) => threat?.startsWith('API'))
  t.same(
    risks,
    Array.from({ length: 10 }, (_, index) => `API${index + 1}`),
  )
  t.end()
})

test('every threat has tests, each of which exists under that title', (t) => {
  const parts = shown.split(/^- \*\*(.+)\*\*\n/m).slice(1)
  const named = new Map<string, string[]>()
  for (let at = 0; at < parts.length; at += 2)
    named.set(
      String(parts[at]),
      String(parts[at + 1])
        .trim()
        .split('\n'),
    )
  t.same([...named.keys()], threats)
  for (const [threat, lines] of named)
    for (const line of lines) {
      const [, file = '', title = ''] = /^ *- `(test\/[\w/.-]+\.ts)`: "([^"]+)"$/.exec(line) ?? []
      const code = existsSync(root + file) && file ? readFileSync(root + file, 'utf8') : ''
      t.ok(hasTest(code, title), `${threat}: ${line}`)
    }
  t.end()
})

/** True when a test has this title, whole but for the `${name}: ` of an engine or the like before it. */
function hasTest(code: string, title: string): boolean {
  return (
    title !== '' && [`'${title}'`, `\`${title}\``, `}: ${title}\``].some((literal) => code.includes(literal))
  )
}
