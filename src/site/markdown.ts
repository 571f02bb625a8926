// Renders our own Markdown as HTML, with ids for headings, and wide parts that can also be scrolled by keyboard.
import { Marked } from 'marked'
import { readingPages, renderCommand, type Site } from './frame.ts'

/** Renders our own Markdown, which may hold HTML. A link to a file that is not served becomes text. */
export function renderMarkdown(site: Site, text: string) {
  const headings: { depth: number; html: string; id: string }[] = []
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
        if (href === undefined) return this.parser.parseInline(token.tokens)
        token.href = href
        // The library's own renderer goes on.
        return false
      },
    },
    hooks: { postprocess: makeScrollable },
  })
  return { html: marked.parse(text, { async: false }), headings }
}

/** Finds the URL at which a link is served: most files of the repository are not. */
function findServed({ basePath }: Site, href: string): string | undefined {
  if (/^(?:https?:|#)/.test(href)) return href
  const [, served] = /^(?:\.\.\/)?(openapi(?:-3\.0)?\.(?:yaml|json)|problems\/[a-z-]+)$/.exec(href) ?? []
  if (served) return basePath + served
  const [, page, place = ''] = /^([a-z]+)\.md(#.*)?$/.exec(href) ?? []
  if (readingPages.includes(String(page))) return `${basePath}docs/${page}${place}`
  return href.startsWith('../examples/') ? `${basePath}docs/${href.slice(3)}` : undefined
}

/** Makes the id of a heading as GitHub does: lower case, hyphens, a number for a repeated heading. */
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
    .replace(/<pre>(<code class="language-sh">.*?<\/code>)<\/pre>/gs, (_, code) => renderCommand(code))
    .replaceAll('<pre>', '<pre tabindex="0">')
    .replaceAll('<table>', '<div class="wide" tabindex="0"><table>')
    .replaceAll('</table>', '</table></div>')
}
