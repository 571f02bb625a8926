// The pages at /problems/…: where the `type` of a problem leads whoever follows it.
import { type ProblemType, type ProblemTypeName, problemTypes } from '../../schemas/problem-types.ts'
import { escapeHtml, renderFrame, type Site } from './frame.ts'
import { renderMarkdown } from './markdown.ts'
import { problemExamples } from './problem-examples.ts'

export const problemNames = Object.keys(problemTypes) as ProblemTypeName[]

/** Makes the HTML of the page of a problem type. */
export function renderProblemPage(site: Site, name: ProblemTypeName): string {
  const { status, title, meaning, advice }: ProblemType = problemTypes[name]
  const examples = problemExamples[name].map(
    (example) => `<pre tabindex="0"><code>${escapeHtml(JSON.stringify(example, null, 2))}</code></pre>`,
  )
  return renderFrame(site, {
    title: `${title} – Plant Store`,
    main: `<article class="prose">
<p class="eyebrow">Problem · ${status}</p>
<h1>${escapeHtml(title)}</h1>
<h2>What it means</h2>
${renderMarkdown(meaning).html}
<h2>What to do</h2>
${renderMarkdown(advice).html}
<h2>Example</h2>
${examples.join('\n')}
<p class="others">Other problems: ${others(site, name)}</p>
</article>`,
  })
}

function others({ basePath }: Site, name: ProblemTypeName): string {
  return problemNames
    .filter((other) => other !== name)
    .map((other) => `<a href="${basePath}problems/${other}">${escapeHtml(problemTypes[other].title)}</a>`)
    .join(', ')
}
