// The frame of all pages: head, icon, navigation and footer.

/** `basePath` and `assets`, the URL of the folder of the assets, end with a slash. */
export type Site = { basePath: string; assets: string }

/** `title`: text; the others: HTML. `action`: in the header; `head`: added to `<head>`; `tail`: after the footer. */
export type Page = { title: string; main: string; head?: string; action?: string; tail?: string }

/** Pages of `docs/` for clients, which are served. */
export const readingPages = ['guide', 'contract', 'versioning']

/**
 * The headers of pages, which load only assets of this service. Swagger UI shows its icons from `data:` URLs; `issuer`:
 * URL at whose origin the page signs in.
 */
export function pageOptions(issuer?: string) {
  const connect = issuer ? ` ${new URL(issuer).origin}` : ''
  const policy =
    `default-src 'none'; base-uri 'none'; connect-src 'self'${connect}; form-action 'none'; frame-ancestors 'none'; ` +
    "img-src 'self' data:; script-src 'self'; style-src 'self'"
  return {
    type: 'text/html; charset=utf-8',
    headers: { 'content-security-policy': policy, 'referrer-policy': 'no-referrer' },
  }
}

/** Frames a command, which a script can copy. `code`: HTML. */
export function renderCommand(code: string): string {
  return `<div class="command"><pre tabindex="0">${code}</pre><button type="button" class="copy">Copy</button></div>`
}

const icon =
  '<svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true"><path class="leaf" d="M27 4C14 4 6 9 6 18c0 ' +
  '2 .5 4 1.5 5.5C10 16 15 12.5 21 11c-5 3-9.5 7-12 14.5L7.5 29h3l1.2-3.2C21 27.5 28 21 27 4z"/></svg>'

/** Makes the HTML of a page. */
export function renderFrame({ basePath, assets }: Site, { title, main, head, action, tail }: Page): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="icon" type="image/svg+xml" href="${assets}icon.svg">
<link rel="stylesheet" href="${assets}theme.css">
${head ?? ''}</head>
<body data-base="${basePath}">
<a class="skip" href="#main">Skip to the content</a>
<header class="site-head">
<a class="brand" href="${basePath}docs">${icon}<span>Plant Store</span></a>
<nav class="links" aria-label="Site">
<a href="${basePath}docs">Docs</a>
<a href="${basePath}docs/guide">Guide</a>
<a href="${basePath}openapi.yaml">Contract</a>
</nav>
${action ?? ''}</header>
<main id="main" tabindex="-1">
${main}
</main>
<footer class="site-foot">
<p>The contract, OpenAPI 3.1: <a href="${basePath}openapi.yaml">openapi.yaml</a>,
<a href="${basePath}openapi.json">openapi.json</a>; for older tools, OpenAPI 3.0:
<a href="${basePath}openapi-3.0.json">openapi-3.0.json</a></p>
</footer>
${tail ?? ''}</body>
</html>
`
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => entities[character] as string)
}
