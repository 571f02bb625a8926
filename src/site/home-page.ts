// The page at /docs: an introduction, and the operations to try.
import { command } from '../runtime/version.ts'
import { describeResource, type Issuer } from '../tokens/issuer.ts'
import { scopes } from '../tokens/tokens.ts'
import { escapeHtml, renderCommand, renderFrame, type Site } from './frame.ts'

const tokenSource = `<p>Tokens are issued where the service runs:</p>
${renderCommand(`<code>${command} token create --name laptop</code>`)}
<p>The first start of a new store prints one as well. No access to that machine? Ask its operator.</p>`

/** A URL that the page's script completes with the address in the browser. */
const base = (basePath: string) =>
  `<span data-origin>http://127.0.0.1:3000</span>${basePath === '/' ? '' : basePath.slice(0, -1)}`

const intro = (path: string) => `<section class="intro">
<h1>Plant Store</h1>
<p class="lead">An append-only list of plants over HTTP. Once an addition is answered with 200, the plant is on stable storage, and
every later list contains it.</p>
<p>New here? Begin below. The <a href="${path}docs/guide">guide</a> shows every answer with examples in curl, JavaScript
and Python; the <a href="${path}openapi.yaml">contract</a> is for programs.</p>
</section>`

const start = (path: string, button: string) => `<section aria-labelledby="begin">
<h2 id="begin">Begin</h2>
<ol class="steps">
<li><h3>Get a token</h3>
${tokenSource}
<div class="buttons"><button type="button" class="primary" data-authorize>Enter a token</button>${button}</div></li>
<li><h3>Add a plant</h3>
<p>Put the token into <code>TOKEN</code> first.</p>
${renderCommand(`<code>curl ${base(path)}/plants \\
  -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '{"name": "Black alder",
       "tag": "Alnus glutinosa"}'</code>`)}</li>
<li><h3>List plants</h3>
<p>In the order in which they were added.</p>
${renderCommand(`<code>curl -G ${base(path)}/plants \\
  -d limit=10 \\
  -H "Authorization: Bearer $TOKEN"</code>`)}</li>
</ol>
</section>`

const rules = (path: string) => `<section aria-labelledby="know">
<h2 id="know">Good to know</h2>
<div class="cards">
<div><h3>Paging</h3>
<p>Ask for a page with <code>limit</code>. When there are more plants, the <code>Link</code> header has the URL of the next
page: follow it as it is. Without <code>limit</code> you get all of them.</p></div>
<div><h3>Retries</h3>
<p>Send an <code>id</code> of your own with each plant. Then a request can be repeated safely: the same plant is not added
twice. On 429 and 503, wait as long as <code>Retry-After</code> says.</p></div>
<div><h3>Errors</h3>
<p>Every error has the same form (RFC 9457). <code>type</code> names the kind of problem and links to its page, for example
<a href="${path}problems/invalid-request">invalid request</a>, <a href="${path}problems/id-conflict">id already taken</a> or
<a href="${path}problems/outcome-unknown">outcome unknown</a>.</p></div>
<div><h3>Caching</h3>
<p>Send the <code>ETag</code> of a list back in <code>If-None-Match</code>: while nothing was added, the answer is 304,
without a body.</p></div>
</div>
</section>`

const operations = (path: string) => `<section aria-labelledby="try">
<h2 id="try">Try it</h2>
<p id="token-state">No token yet: requests from this page will be refused with 401.
<button type="button" class="link" data-authorize>Enter a token</button></p>
<div id="operations"><p>Loading the operations…</p></div>
<noscript><p>To try requests here, allow scripts. The <a href="${path}docs/guide">guide</a> needs none.</p></noscript>
</section>`

const dialog = (button: string) => `<dialog id="authorize" aria-labelledby="authorize-title">
<form method="dialog">
<h2 id="authorize-title">Authorize</h2>
<label for="token">Access token</label>
<input id="token" type="password" autocomplete="off" autocapitalize="off" spellcheck="false" placeholder="plant_…">
<p class="hint">It is checked with one request, and kept in this tab until you close it.</p>
<div id="verdict" role="status"></div>
<div class="buttons">
<button type="submit" class="primary" value="check">Check and use</button>
${button}<button type="button" id="forget" hidden>Forget it</button>
<button type="button" id="close">Close</button>
</div>
</form>
<template id="token-source">${tokenSource}</template>
</dialog>
`

const signInButton = '<button type="button" data-sign-in>Sign in</button>\n'

/** Loads the script that signs in at an issuer, and tells it how. */
function loadSignIn({ assets }: Site, issuer: Issuer): string {
  const data = {
    client: issuer.oidcDocsClientId,
    scopes: scopes.map((scope) => issuer.oidcScopePrefix + scope).join(' '),
    resource: describeResource(issuer)?.metadata.resource ?? '',
  }
  const attributes = Object.entries(data).map(
    ([name, value]) => ` data-${name}="${escapeHtml(String(value))}"`,
  )
  return `<script type="module" src="${assets}sign-in.js" id="sign-in"${attributes.join('')}></script>\n`
}

/** Makes the HTML of the page. `issuer`: where readers can sign in. */
export function renderHomePage(site: Site, issuer?: Issuer): string {
  const { basePath, assets } = site
  const button = issuer ? signInButton : ''
  return renderFrame(site, {
    title: 'Plant Store',
    main: [intro(basePath), start(basePath, button), rules(basePath), operations(basePath)].join('\n'),
    head: `<link rel="stylesheet" href="${assets}home.css">
<link rel="modulepreload" href="${assets}authorize.js">
<link rel="modulepreload" href="${assets}swagger-plugin.js">
<link rel="modulepreload" href="${assets}copy.js">
<link rel="preload" href="${basePath}openapi.json" as="fetch" crossorigin>
<script defer src="${assets}swagger-ui.js"></script>
${issuer ? loadSignIn(site, issuer) : ''}<script type="module" src="${assets}page.js"></script>
`,
    action: '<button type="button" class="primary" data-authorize data-state>Authorize</button>\n',
    tail: dialog(button),
  })
}

/** Makes the HTML of the page to which the issuer sends readers back: it hands the code to the page that opened it. */
export function renderRedirectPage({ assets }: Site): string {
  return `<!doctype html>\n<title>Plant Store</title>\n<script src="${assets}oauth2-redirect.js"></script>\n`
}
