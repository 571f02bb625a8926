// The pages in Markdown: links and contents are correct, docs/operate.md explains every line that the code can log, and
// every file, script, setting, command, flag and metric that a page names exists.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import { buildProgram } from '../../src/cli/program.ts'
import { settingRows } from '../../src/settings.ts'
import { root } from '../support/processes.ts'

const read = (file: string) => readFileSync(join(root, file), 'utf8')
const pages = globSync(['*.md', 'bench/*.md', 'client/*.md', 'docs/**/*.md', 'test/**/*.md'], { cwd: root })

type Heading = { depth: number; title: string }

const readText = (page: string) => read(page).replaceAll(/^( *)```.*?^\1```$/gms, '')

function readHeadings(page: string): Heading[] {
  const found = readText(page).matchAll(/^(#+) (.+)$/gm)
  return [...found].map(([, marks = '', title = '']) => ({ depth: marks.length, title }))
}

/** The anchor of a heading, as GitHub makes it. */
function toAnchor(title: string): string {
  const letters = title.toLowerCase().replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
  return letters.replaceAll(' ', '-')
}

test('each link points to an existing file and heading', async (t) => {
  t.ok(pages.length > 25)
  for (const page of pages)
    for (const [, target = '', anchor] of readText(page).matchAll(/\]\(([^)#:\s]*)(?:#([^)]*))?\)/g)) {
      const file = target === '' ? page : join(dirname(page), target)
      if (!t.ok(existsSync(join(root, file)), `${page}: ${target}`) || anchor === undefined) continue
      const anchors = readHeadings(file).map(({ title }) => toAnchor(title))
      t.ok(anchors.includes(anchor), `${page}: ${target}#${anchor}`)
    }
})

test('the contents at the top of a page are its headings in order', async (t) => {
  let seen = 0
  for (const page of pages) {
    const contents = /^# .+\n(\[.+?\)(?: ·\n\[.+?\))*)\n/.exec(readText(page))?.[1]
    if (contents === undefined) continue
    seen += 1
    const chapters = readHeadings(page).filter(({ depth }) => depth === 2)
    t.equal(contents, chapters.map(({ title }) => `[${title}](#${toAnchor(title)})`).join(' ·\n'), page)
  }
  t.ok(seen >= 5)
})

const operate = read('docs/operate.md')
/** The texts that a chapter of operate.md has in the first column of its table. */
function readIndex(title: string): string[] {
  const [, index = ''] = new RegExp(`## ${title}\\n(.*?)\\n## `, 's').exec(operate) ?? []
  const cells = [...index.matchAll(/^\| (.+?) \|/gm)].map(([, cell = '']) => cell)
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text))
}
const explained = readIndex('Log messages')
const sources = globSync('src/**/*.ts', { cwd: root }).map(read)

const text = /'([^'\n]+)'|`([^`\n]+)`/.source
/** Where the code has log messages: calls of a logger, the messages of an outage, and named constants. */
const places = [
  `(?:[lL]ogger|\\blog)\\.(?:debug|info|warn|error|fatal)\\(\\s*(?:\\{[^}]*\\},\\s*)?(?:${text})`,
  `\\b(?:failed:|recovered:)\\s+(?:${text})`,
  `\\blisten\\(app, [^>]*=> (?:${text})`,
  `const (?:unsynced|unwritten|cutWal) =\\s+(?:${text})`,
]
const found = sources.flatMap((code) =>
  places.flatMap((place) => [...code.matchAll(new RegExp(place, 'g'))].flatMap(([, ...texts]) => texts)),
)
const logged = found.filter((one) => one !== undefined)

test('operate.md explains every line of the log, and no others', async (t) => {
  t.ok(logged.length > 25, `${logged.length} are found`)
  const missing = logged.filter((line) => !explained.some((one) => line.includes(one)))
  const gone = explained.filter((one) => !logged.some((line) => line.includes(one)))
  t.same({ missing, gone }, { missing: [], gone: [] })
})

test('every message that operate.md explains is in the code', async (t) => {
  const files = globSync(['src/**/*.ts', 'schemas/*.ts'], { cwd: root })
  const code = files.map((file) => read(file).replaceAll("\\'", "'")).join('')
  const messages = readIndex('Error messages')
  t.ok(messages.length > 12)
  for (const part of messages.flatMap((message) => message.split('…')).map((text) => text.trim()))
    t.ok(code.includes(part), part)
})

const described = globSync(['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/**/*.md'], { cwd: root })
const source = sources.join('\n')
const { scripts } = JSON.parse(read('package.json'))
const settings = settingRows.flatMap(({ name, hasFile }) => (hasFile ? [name, `${name}_FILE`] : [name]))

type Exists = (name: string, ...more: string[]) => boolean
/** Finds names in all pages by a pattern with the name as its first group, and asserts that they exist. */
function check(what: string, pattern: RegExp, least: number, exists: Exists): void {
  test(`each ${what} that a page names exists`, async (t) => {
    const found = described.flatMap((page) =>
      [...read(page).matchAll(pattern)].map(([, ...groups]) => ({ page, groups })),
    )
    t.ok(found.length >= least, `${found.length} are found`)
    for (const { page, groups } of found)
      if (!exists(...(groups as [string]))) t.fail(`${page}: ${groups.join(' ')}`)
  })
}

const folders = 'schemas|src|test|docs|deploy|examples|client|contract|bench|package|bin|\\.ci'
check('path', new RegExp(`\`((?:${folders})/[\\w./-]*)\``, 'g'), 40, (path) => existsSync(root + path))

check('script', /npm run ([\w:]+)/g, 20, (name) => name in scripts)

/** Names of other programs, and of the service's own tests, that look like settings. */
const foreign =
  /^(BASE_URL|TOKEN|READ_TOKEN|TARGET|NEW_DATABASE_URL|NODE_EXTRA_CA_CERTS|OTEL_\w+|TEST_\w+|UPDATE_GUIDE|REQUIRE_TOOLS)$/
check('setting', /(?<![\w$-])([A-Z]{2,}(?:_[A-Z]+)+)(?![\w:])/g, 100, (name) => {
  return settings.includes(name) || foreign.test(name)
})

check('metric', /`(plant_store_\w+|http_request_\w+)`/g, 15, (name) => source.includes(`'${name}'`))

check('alert', /(?<!#)\b(PlantStore[A-Z]\w+)/g, 15, (name) =>
  read('deploy/prometheus-rules.yml').includes(`: ${name}\n`),
)

const program = await buildProgram()
const flagsOf = (command: (typeof program)['commands'][number] | undefined) => [
  '--help',
  ...(command?.options ?? []).map(({ long }) => String(long)),
]
// A line that runs plant-store, up to a pipe or redirection.
check('command', /(?:^|[`\s/])plant-store ([a-z]+)((?: [^`\n|&;]+)?)/gm, 60, (name, rest = '') => {
  const command = program.commands.find((one) => one.name() === name)
  if (command === undefined) return false
  const child = command.commands.find((one) => one.name() === rest.trim().split(' ', 1)[0])
  const flags = rest.match(/(?<=\s|\[)--[a-z-]+/g) ?? []
  return flags.every((flag) => flagsOf(child ?? command).includes(flag))
})

check('flag', /`(--[a-z-]+)(?:[ =][^`]*)?`/g, 15, (flag) => {
  const all = program.commands.flatMap((command) => [command, ...command.commands]).flatMap(flagsOf)
  return all.includes(flag) || /^--(env|omit|tty|quick|grep|global|cacert|resolve|compressed)$/.test(flag)
})
