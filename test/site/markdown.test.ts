// The pages in Markdown: each link leads to a file and to a heading in it, and a page with a list of contents lists all.
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

test('each link leads to a file, and to a heading in it', (t) => {
  t.ok(pages.length > 25)
  for (const page of pages)
    for (const [, target = '', anchor] of readText(page).matchAll(/\]\(([^)#:\s]*)(?:#([^)]*))?\)/g)) {
      const file = target === '' ? page : join(dirname(page), target)
      if (!t.ok(existsSync(join(root, file)), `${page}: ${target}`) || anchor === undefined) continue
      const anchors = readHeadings(file).map(({ title }) => toAnchor(title))
      t.ok(anchors.includes(anchor), `${page}: ${target}#${anchor}`)
    }
  t.end()
})

test('contents at the top of a page are its headings, in their order', (t) => {
  let seen = 0
  for (const page of pages) {
    const contents = /^# .+\n(\[.+?\)(?: ·\n\[.+?\))*)\n/.exec(readText(page))?.[1]
    if (contents === undefined) continue
    seen += 1
    const chapters = readHeadings(page).filter(({ depth }) => depth === 2)
    t.equal(contents, chapters.map(({ title }) => `[${title}](#${toAnchor(title)})`).join(' ·\n'), page)
  }
  t.ok(seen >= 5)
  t.end()
})

test('each message that operate.md explains is one of the code', (t) => {
  const code = globSync(['src/**/*.ts', 'schemas/*.ts'], { cwd: root }).map(readSource).join('')
  const [, index = ''] = /## By message\n(.*?)\n## /s.exec(readText('docs/operate.md')) ?? []
  const cells = [...index.matchAll(/^\| (.+?) \|/gm)].map(([, cell = '']) => cell)
  const messages = cells.flatMap((cell) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, message = '']) => message),
  )
  t.ok(messages.length > 12)
  for (const part of messages.flatMap((message) => message.split('…')).map((text) => text.trim()))
    t.ok(code.includes(part), part)
  t.end()
})

/** Without backslashes before quotes. */
function readSource(file: string): string {
  return readFileSync(join(root, file), 'utf8').replaceAll("\\'", "'")
}
