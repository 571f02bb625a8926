// From Markdown of our own to HTML: headings that can be linked to, and wide parts that scroll by keyboard, too.
import { Marked, type Tokens } from 'marked'
import type { Site } from './frame.ts'

export type Heading = { depth: number; html: string; id: string }

/** Renders Markdown of our own, which may hold HTML. A link to what is not served becomes its text. */
export function renderMarkdown(site: Site, text: string): { html: string; headings: Heading[] } {
  const headings: Heading[] = []
  const ids = new Set<string>()
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        const html = this.parser.parseInline(tokens)
        const id = makeId(text, ids)
        headings.push({ depth, html, id })
        return `<h${depth} id="${id}">${html}</h${depth}>\n`
      },
      link(token) {
        const href = findServed(site, token.href)
        return href === undefined ? this.parser.parseInline(token.tokens) : linkTo(token, href, this.parser)
      },
    },
    hooks: { postprocess: makeScrollable },
  })
  return { html: marked.parse(text, { async: false }), headings }
}

/** Our Markdown is also read in the repository, most of whose files are not served. */
function findServed({ basePath }: Site, href: string): string | undefined {
  if (/^(?:https?:|#)/.test(href)) return href
  const served = /^(?:\.\.\/)?(openapi(?:-3\.0)?\.(?:yaml|json)|problems\/[a-z-]+)$/.exec(href)
  return served ? basePath + served[1] : undefined
}

type Parser = { parseInline: (tokens: Tokens.Link['tokens']) => string }

function linkTo({ tokens }: Tokens.Link, href: string, parser: Parser): string {
  return `<a href="${href.replaceAll('"', '%22').replaceAll('&', '&amp;')}">${parser.parseInline(tokens)}</a>`
}

/** As GitHub makes them: lower case, words with hyphens, a number where a heading comes again. */
function makeId(text: string, taken: Set<string>): string {
  const words = text.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '')
  const id = words.trim().replaceAll(' ', '-')
  let unique = id
  for (let n = 1; taken.has(unique); n++) unique = `${id}-${n}`
  taken.add(unique)
  return unique
}

function makeScrollable(html: string): string {
  return html
    .replaceAll('<pre>', '<pre tabindex="0">')
    .replaceAll('<table>', '<div class="wide" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>')
}
