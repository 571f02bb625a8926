// docs/operate.md explains every line that the code can log.
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(`${root}docs/operate.md`, 'utf8')
const [, index = ''] = /## Every line of the log\n(.*?)\n## /s.exec(page) ?? []
const explained = [...index.matchAll(/^\| (`.*?) \| /gm)].flatMap(([, cell = '']) =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, line]) => String(line)),
)
const sources = globSync('src/**/*.ts', { cwd: root }).map((file) => readFileSync(root + file, 'utf8'))

const text = /'([^'\n]+)'|`([^`\n]+)`/.source
/** Where the code says what is logged: calls of a logger, the words of an outage, and texts with a name. */
const places = [
  `(?:[lL]ogger|\\blog)\\.(?:info|warn|error|fatal)\\(\\s*(?:\\{[^}]*\\},\\s*)?(?:${text})`,
  `\\b(?:gone:|still:|back:|const back =)\\s+(?:${text})`,
  `\\bwords\\(\\s*(?:${text}),\\s*(?:${text})`,
  `listenTextResolver[^>]*=> (?:${text})`,
  `function endProcess[^}]*message =\\s+(?:${text})`,
  `function describe(?:Loss|Unsafe)\\([^)]*\\)[^{]*\\{\\s+return (?:${text})`,
]
const found = sources.flatMap((code) =>
  places.flatMap((place) => [...code.matchAll(new RegExp(place, 'g'))].flatMap(([, ...texts]) => texts)),
)
const logged = found.filter((one) => one !== undefined)

test('every line of the log is explained', (t) => {
  t.ok(logged.length > 30, `${logged.length} are found`)
  for (const line of logged)
    t.ok(
      explained.some((one) => line.includes(one)),
      line,
    )
  t.end()
})

test('every line that is explained is in the code', (t) => {
  for (const one of explained)
    t.ok(
      logged.some((line) => line.includes(one)),
      one,
    )
  t.end()
})
