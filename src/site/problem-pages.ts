// The pages at /problems/…, to which the `type` of a problem leads.
import { problemExamples } from '../../schemas/examples.ts'
import type { Problem } from '../../schemas/problem.ts'
import { type ProblemType, type ProblemTypeName, problemTypes } from '../../schemas/problems.ts'
import { escapeHtml, renderFrame, type Site } from './frame.ts'
import { renderMarkdown } from './markdown.ts'

const problemNames = Object.keys(problemTypes) as ProblemTypeName[]

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
