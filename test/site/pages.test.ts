// The pages: home, the guide, and a page for each type of problem.
import fs from 'node:fs'
import tap, { before, test } from 'tap'
import { problemTypes } from '../../schemas/problems.ts'
import { renderMarkdown } from '../../src/plugins/docs/pages.ts'
import { request, startApp } from '../support/service.ts'
import { send } from '../support/wire.ts'
import { launchBrowser, plainHost } from './browser.ts'

const open = { headers: { authorization: '' } }

test('the commands of the home page have the address of the browser, and can be copied', async (t) => {
  const { port } = await startApp(t, undefined, { env: { BASE_PATH: '/store/v1' } })
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

/** The URL of a service without a base path. */
let url: string
before(async () => (url = (await startApp(tap)).url))

test('each type of problem has a page with its examples, and problems link to it', async (t) => {
  const { url: other } = await startApp(t, undefined, { env: { BASE_PATH: '/store/v1' } })
  for (const [basePath, origin] of Object.entries({ '/': url, '/store/v1/': other })) {
    for (const [name, { title, status }] of Object.entries(problemTypes)) {
      const page = await request(`${origin}${basePath}problems/${name}`, open)
      t.match(page, { status: 200, text: `>${title}</h1>` }, name)
      t.match(page.text, `Problem, status ${status}`)
      t.match(page.text, `${basePath}problems/${name}&quot;`, 'an example')
    }
    for (const path of ['problems', 'problems/other', 'docs/other'])
      t.match(await request(`${origin}${basePath}${path}`, open), { status: 404 }, path)
    const contract = await fetch(`${origin}${basePath}docs/yaml`)
    t.match(contract, { redirected: true, status: 200, url: `${origin}${basePath}openapi.yaml` })
    t.equal((await fetch(`${origin}${basePath}docs/?a=/`)).url, `${origin}${basePath}docs`, 'without query')
    const { type } = (await request(`${origin}${basePath}plants`, { body: {} })).json() as { type: string }
    t.equal(type, `${basePath}problems/invalid-request`)
    const unread = await send(Number(new URL(origin).port), 'no HTTP\r\n\r\n')
    t.equal(JSON.parse(unread.text).type, type)
  }
})

test('the pages load only files of the service, which browsers must revalidate', async (t) => {
  const rules = ["base-uri 'none'", "form-action 'none'", "script-src 'self'", "frame-ancestors 'none'"]
  for (const path of ['', 'docs', 'docs/guide', 'docs/static/swagger-ui-bundle.js', 'problems/unread']) {
    const { headers } = await request(`${url}/${path}`, open)
    const policy = String(headers.get('content-security-policy'))
    for (const rule of rules)
      t.ok(path.includes('static') || policy.split(/ *; */).includes(rule), `${path}: ${policy}`)
    t.match(policy, "default-src 'none'", path)
    t.notMatch(policy, /unsafe|\*|https?:|upgrade-insecure/)
    t.equal(headers.get('referrer-policy'), 'no-referrer')
    t.equal(headers.get('cache-control'), 'no-cache')
  }
})

test('pages and documents that need no token are compressed', async (t) => {
  for (const path of ['docs/guide', 'openapi.yaml', 'openapi.json', 'docs/static/swagger-ui.css'])
    for (const coding of ['br', 'gzip']) {
      const coded = { authorization: '', 'accept-encoding': coding }
      const { headers, text } = await request(`${url}/${path}`, { headers: coded })
      t.match([headers.get('content-encoding'), headers.get('vary')], [coding, /accept-encoding/i], path)
      t.equal(text, (await request(`${url}/${path}`, open)).text)
    }
})

test('many requests for a compressed file do not fill the memory', async (t) => {
  const { app } = await startApp(t)
  const file = { url: '/docs/static/swagger-ui-bundle.js', headers: { 'accept-encoding': 'br' } }
  const failing = t.capture(fs, 'read', (...given: unknown[]) =>
    (given.at(-1) as (error: Error) => void)(new Error('EIO')),
  )
  t.equal((await app.inject(file)).statusCode, 500)
  failing.restore()
  const { maxRSS: before } = process.resourceUsage()
  const answers = await Promise.all(Array.from({ length: 200 }, () => app.inject(file)))
  t.same(new Set(answers.map(({ statusCode }) => statusCode)), new Set([200]), 'the failure is not cached')
  const grownMiB = (process.resourceUsage().maxRSS - before) / 1024
  // Each response is kept until the end.
  t.ok(grownMiB < 600, `+ ${Math.round(grownMiB)} MiB`)
})

test('every link of the pages works', async (t) => {
  const { url } = await startApp(t, undefined, { env: { BASE_PATH: '/store/v1' } })
  const seen = new Set([`${url}/store/v1/`])
  for (const page of seen) {
    const { status, text, headers } = await request(page, open)
    t.equal(status, 200, page)
    t.notMatch(text, /<(?:p|td|li)>[^<]*\b[a-z]+\.md\b/, 'no name of a Markdown file')
    if (!headers.get('content-type')?.startsWith('text/html')) continue
    t.notMatch(text, /\{\{|undefined/, 'no unfilled placeholder')
    for (const [, href = ''] of text.matchAll(/ (?:href|src)="([^"#][^"]*)"/g)) {
      const target = new URL(href, page)
      if (target.origin === url) seen.add(target.href.replace(/#.*/, ''))
    }
  }
  t.ok(seen.size > 15, `${seen.size} pages`)
  for (const path of ['docs/guide', 'examples/python.py']) t.ok(seen.has(`${url}/store/v1/${path}`), path)
})

test('headings have the same anchors as on GitHub', async (t) => {
  const html = await renderMarkdown('/', '## Paging & `limit`')
  t.match(html, '<h2 id="paging--limit">Paging &amp; <code>limit</code></h2>')
})
