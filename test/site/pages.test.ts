// The pages to read: home, the guide, and a page for each type of problem.
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import tap, { before, test } from 'tap'
import { problemTypes } from '../../schemas/problems.ts'
import { renderMarkdown } from '../../src/plugins/docs/pages.ts'
import { request, startApp } from '../support/service.ts'
import { launchBrowser, plainHost } from './browser.ts'

const open = { headers: { authorization: '' } }

test('the home page teaches, and its commands have the address in the browser and can be copied', async (t) => {
  const env = { BASE_PATH: '/store/v1' }
  const { port } = await startApp(t, undefined, { env })
  const browser = await launchBrowser(t)
  for (const host of ['localhost', plainHost]) {
    const page = await browser.newPage()
    await page.goto(`http://${host}:${port}/store/v1/`)
    const [create, add, list] = await page.locator('.steps code.language-sh').allTextContents()
    t.equal(create, 'npx plant-store token create --name laptop')
    for (const command of [add, list]) t.match(command, `http://${host}:${port}/store/v1/plants`)
    t.same(await page.locator('.cards h3').allTextContents(), ['Paging', 'Retries', 'Errors', 'Caching'])
    await page.evaluate(
      "document.addEventListener('copy', () => (globalThis.copied = String(getSelection())))",
    )
    if (await page.evaluate('isSecureContext'))
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.locator('.copy').first().click()
    await page.locator('.copy:has-text("Copied")').waitFor()
    const copied = await page.evaluate('globalThis.copied ?? navigator.clipboard.readText()')
    t.equal(String(copied).trim(), create)
  }
})

/** Without a base path. */
let url: string
before(async () => {
  url = (await startApp(tap)).url
})

test('each type of problem has its page, with its examples, to which a problem leads', async (t) => {
  const { url: other } = await startApp(t, undefined, { env: { BASE_PATH: '/store/v1' } })
  for (const [origin, basePath] of [
    [url, '/'],
    [other, '/store/v1/'],
  ] as const) {
    for (const [name, { title, status }] of Object.entries(problemTypes)) {
      const page = await request(`${origin}${basePath}problems/${name}`, open)
      t.match(page, { status: 200, text: `>${title}</h1>` }, name)
      t.match(page.text, `Problem, status ${status}`)
      t.match(page.text, `${basePath}problems/${name}&quot;`, 'an example')
    }
    for (const path of ['problems', 'problems/other', 'docs/other'])
      t.match(await request(`${origin}${basePath}${path}`, open), { status: 404 }, path)
    const { type } = (await request(`${origin}${basePath}plants`, { body: {} })).json() as { type: string }
    t.equal(type, `${basePath}problems/invalid-request`)
  }
})

test('the pages load only files of the service, and the browser asks before it uses them again', async (t) => {
  for (const path of ['', 'docs', 'docs/guide', 'docs/static/swagger-ui-bundle.js', 'problems/unread']) {
    const { headers } = await request(`${url}/${path}`, open)
    const policy = String(headers.get('content-security-policy'))
    for (const rule of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"])
      t.ok(path.includes('static') || policy.split(/ *; */).includes(rule), `${path}: ${policy}`)
    t.match(policy, "default-src 'none'", path)
    t.notMatch(policy, /unsafe|\*|https?:|upgrade-insecure/)
    t.equal(headers.get('referrer-policy'), 'no-referrer')
    t.equal(headers.get('cache-control'), 'no-cache')
  }
})

test('what is open without a token is compressed', async (t) => {
  const decoders = { br: brotliDecompressSync, gzip: gunzipSync }
  for (const path of ['docs/guide', 'openapi.yaml', 'openapi.json', 'docs/static/swagger-ui.css'])
    for (const [coding, decode] of Object.entries(decoders)) {
      const sent = get(`${url}/${path}`, { headers: { 'accept-encoding': coding } })
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      const { headers } = response
      const bytes = Buffer.concat(await response.toArray())
      t.match([headers['content-encoding'], headers.vary], [coding, /accept-encoding/i], path)
      t.equal(decode(bytes).toString(), (await request(`${url}/${path}`, open)).text)
    }
  const plants = get(`${url}/plants`, { headers: { 'accept-encoding': 'br' } })
  const [refused] = (await once(plants, 'response')) as [IncomingMessage]
  t.equal(refused.headers['content-encoding'], undefined, 'the operations have codings of their own')
  t.match(await text(refused), 'Unauthorized')
})

test('every link of the pages leads somewhere', async (t) => {
  const { url } = await startApp(t, undefined, { env: { BASE_PATH: '/store/v1' } })
  const seen = new Set([`${url}/store/v1/`])
  for (const page of seen) {
    const { status, text, headers } = await request(page, open)
    t.equal(status, 200, page)
    t.equal(headers.get('x-content-type-options'), 'nosniff', page)
    t.notMatch(text, /<(?:p|td|li)>[^<]*\b[a-z]+\.md\b/, 'no name of a file that is not served')
    if (!headers.get('content-type')?.startsWith('text/html')) continue
    t.notMatch(text, /\{\{|undefined/, 'nothing is left unfilled')
    for (const [, href = ''] of text.matchAll(/ (?:href|src)="([^"#][^"]*)"/g)) {
      const target = new URL(href, page)
      if (target.origin === url) seen.add(target.href.replace(/#.*/, ''))
    }
  }
  t.ok(seen.size > 15, `${seen.size} pages`)
  t.ok(seen.has(`${url}/store/v1/docs/guide`))
})

const links: [href: string, served: string | undefined][] = [
  ['https://www.rfc-editor.org/rfc/rfc9110', 'https://www.rfc-editor.org/rfc/rfc9110'],
  ['#retries', '#retries'],
  ['../openapi.yaml', '/store/v1/openapi.yaml'],
  ['guide.md#retries', '/store/v1/docs/guide#retries'],
  ['../examples/python.py', '/store/v1/docs/examples/python.py'],
  ['operate.md', undefined],
  ['../client/README.md', undefined],
  ['javascript:alert(1)', undefined],
]

test('links of the guide lead where the page is, and are text where nothing is served', async (t) => {
  const base = '/store/v1/'
  for (const [href, served] of links) {
    const html = renderMarkdown(base, `# Title\n[the *text*](<${href}>)`)
    if (served === undefined) t.match(html, '<p>the <em>text</em></p>', href)
    else t.ok(html.includes(`<p><a href="${served}">the <em>text</em></a></p>`), href)
  }
  t.match(
    renderMarkdown(base, '## Paging & `limit`'),
    '<h2 id="paging--limit">Paging &amp; <code>limit</code></h2>',
  )
})
