// The pages in Markdown: links and contents are correct, and docs/operate.md explains every line that the code can log.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'

const root = fileURLToPath(new URL('../../', import.meta.url))
const pages = globSync(['*.md', 'bench/*.md', 'client/*.md', 'docs/**/*.md', 'test/**/*.md'], { cwd: root })

type Heading = { depth: number; title: string }

function readText(page: string): string {
  return readFileSync(join(root, page), 'utf8').replaceAll(/^( *)```.*?^\1```$/gms, '')
}

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

const operate = readFileSync(`${root}docs/operate.md`, 'utf8')
const [, index = ''] = /## Every line of the log\n(.*?)\n## /s.exec(operate) ?? []
const explained = [...index.matchAll(/^\| (`.*?) \| /gm)].flatMap(([, cell = '']) =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, line]) => String(line)),
)
const sources = globSync('src/**/*.ts', { cwd: root }).map((file) => readFileSync(root + file, 'utf8'))

const text = /'([^'\n]+)'|`([^`\n]+)`/.source
/** Where the code has texts of the log: calls of a logger, words of an outage, and named texts. */
const places = [
  `(?:[lL]ogger|\\blog)\\.(?:debug|info|warn|error|fatal)\\(\\s*(?:\\{[^}]*\\},\\s*)?(?:${text})`,
  `\\b(?:failed:|recovered:)\\s+(?:${text})`,
  `\\blisten\\(app, [^>]*=> (?:${text})`,
  `const (?:unsynced|unwritten|cutLog) =\\s+(?:${text})`,
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
  const code = files.map((file) => readFileSync(root + file, 'utf8').replaceAll("\\'", "'")).join('')
  const [, index = ''] = /## By message\n(.*?)\n## /s.exec(operate) ?? []
  const cells = [...index.matchAll(/^\| (.+?) \|/gm)].map(([, cell = '']) => cell)
  const messages = cells.flatMap((cell) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, message = '']) => message),
  )
  t.ok(messages.length > 12)
  for (const part of messages.flatMap((message) => message.split('…')).map((text) => text.trim()))
    t.ok(code.includes(part), part)
})
