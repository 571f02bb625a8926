// The page at /docs/guide: docs/guide.md with a table of contents.
import { readFile } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'
import { renderFrame, type Site } from './frame.ts'
import { renderMarkdown } from './markdown.ts'

const source = join(dirname(findPackageJSON(import.meta.url) as string), 'docs/guide.md')

export function readGuide(): Promise<string> {
  return readFile(source, 'utf8')
}

/** Makes the HTML of the page from the guide in Markdown. */
export function renderGuide(site: Site, text: string): string {
  const { html, headings } = renderMarkdown(site, text)
  const contents = headings
    .filter(({ depth }) => depth === 2)
    .map(({ html, id }) => `<li><a href="#${id}">${html}</a></li>`)
  return renderFrame(site, {
    title: 'Guide – Plant Store',
    main: `<div class="with-contents">
<nav class="contents" aria-label="Contents"><h2>Contents</h2><ol>${contents.join('')}</ol></nav>
<article class="prose">${html}</article>
</div>`,
  })
}
