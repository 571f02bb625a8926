// The HTML pages: home, the guide, and one per problem type. `base` is the base path, which ends with a slash.
import { readFileSync } from 'node:fs'
import { makeExamples } from '../../../schemas/examples.ts'
import { type ProblemTypeName, problemTypeNames, problemTypes } from '../../../schemas/problems.ts'
import { commandName, root } from '../../version.ts'

/** The example programs. The relative links of the guide work here as in the repository. */
export const programs = ['add-and-list.sh', 'go.go', 'javascript.mjs', 'python.py']

/** Reads a text file of the package. */
export const readOwn = (path: string, folder: string | URL = root) =>
  readFileSync(new URL(path, folder), 'utf8')

/** Reads a file in `static/`, and fills in `{{base}}`, `{{command}}` and the names in `more`. */
export function fill(base: string, file: string, more: Record<string, unknown> = {}): string {
  const texts: Record<string, unknown> = { base, command: commandName, ...more }
  const text = readOwn(`static/${file}`, import.meta.url)
  return text.replace(/\{\{(\w+)\}\}/g, (_, name) => String(texts[name]))
}

/** Renders a page. `title`: plain text; `main`: HTML. */
export const renderPage = (base: string, title: string, main: string) =>
  fill(base, 'frame.html', { title, main, header: fill(base, 'header.html') })

/** Renders a page from trusted Markdown. */
export async function renderMarkdown(base: string, text: string): Promise<string> {
  // Loaded only when a page is rendered.
  const { Marked } = await import('marked')
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        // The same id as on GitHub.
        const words = text.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '')
        const id = words.replaceAll(' ', '-')
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
    },
  })
  const [, title] = /^# (.*)/m.exec(text) ?? []
  const article = `<article class="prose">${marked.parse(text, { async: false })}</article>`
  return renderPage(base, `${title} – Plant Store`, article)
}

/** Builds the page of a problem type, in Markdown. */
export function describeProblemType(base: string, name: ProblemTypeName): string {
  const byStatus = Object.values(makeExamples(base)).flatMap(({ responses }) => Object.values(responses))
  const bodies = byStatus.flatMap((examples) => Object.values(examples)).map(({ value }) => value)
  const own = bodies.filter((body) => Object(body).type === `${base}problems/${name}`)
  const blocks = new Set(own.map((body) => `\`\`\`json\n${JSON.stringify(body, null, 2)}\n\`\`\``))
  const links = problemTypeNames.map((other) => `[${problemTypes[other].title}](${base}problems/${other})`)
  const texts = { ...problemTypes[name], examples: [...blocks].join('\n\n'), problems: links.join(', ') }
  return fill(base, 'problem.md', texts)
}
