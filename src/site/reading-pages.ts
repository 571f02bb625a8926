// The pages to read: those of docs/ for clients, with a table of contents, and those at /problems/…, to which the `type` of
// a problem leads.
import { readFile } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'
import { problemExamples } from '../../schemas/examples.ts'
import type { Problem } from '../../schemas/problem.ts'
import { type ProblemType, type ProblemTypeName, problemTypes } from '../../schemas/problems.ts'
import { escapeHtml, renderFrame, type Site } from './frame.ts'
import { renderMarkdown } from './markdown.ts'

const root = dirname(findPackageJSON(import.meta.url) as string)
const problemNames = Object.keys(problemTypes) as ProblemTypeName[]

/** Reads a file of the package. */
export function readOwn(path: string): Promise<string> {
  return readFile(join(root, path), 'utf8')
}

/** Makes the HTML of a page of `docs/`. */
export async function renderReadingPage(site: Site, name: string): Promise<string> {
  return renderPage(site, await readOwn(`docs/${name}.md`))
}

/** Makes the HTML of a page in Markdown, with its contents beside it. */
export function renderPage(site: Site, text: string): string {
  const { html, headings } = renderMarkdown(site, text)
  const contents = headings
    .filter(({ depth }) => depth === 2)
    .map(({ html, id }) => `<li><a href="#${id}">${html}</a></li>`)
  return renderFrame(site, {
    title: `${/^# (.*)/.exec(text)?.[1]} – Plant Store`,
    head: `<script type="module" src="${site.assets}copy.js"></script>\n`,
    main: `<div class="with-contents">
<nav class="contents" aria-label="Contents"><h2>Contents</h2><ol>${contents.join('')}</ol></nav>
<article class="prose">${html}</article>
</div>`,
  })
}

/** Makes the HTML of the page of a problem type. */
export function renderProblemPage(site: Site, name: ProblemTypeName): string {
  const { status, title, meaning, advice }: ProblemType = problemTypes[name]
  const examples = problemExamples[name].map((example) => showExample(site, example))
  return renderFrame(site, {
    title: `${title} – Plant Store`,
    main: `<article class="prose">
<p class="eyebrow">Problem · ${status}</p>
<h1>${escapeHtml(title)}</h1>
<h2>What it means</h2>
${renderMarkdown(site, meaning).html}
<h2>What to do</h2>
${renderMarkdown(site, advice).html}
<h2>Example</h2>
${examples.join('\n')}
<p class="others">Other problems: ${others(site, name)}</p>
</article>`,
  })
}

/** Formats an example, with its paths below the base path. */
function showExample({ basePath }: Site, { type, ...rest }: Problem): string {
  const example = { type: basePath + type.slice(1), ...rest }
  return `<pre tabindex="0"><code>${escapeHtml(JSON.stringify(example, null, 2))}</code></pre>`
}

function others({ basePath }: Site, name: ProblemTypeName): string {
  return problemNames
    .filter((other) => other !== name)
    .map((other) => `<a href="${basePath}problems/${other}">${escapeHtml(problemTypes[other].title)}</a>`)
    .join(', ')
}
