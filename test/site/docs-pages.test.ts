// The pages to read: the guide, and one for each type of problem.
import { test } from 'tap'
import { problemExamples } from '../../schemas/examples.ts'
import { type ProblemTypeName, problemTypes } from '../../schemas/problems.ts'
import { renderPage } from '../../src/site/reading-pages.ts'
import { sqlite } from '../support/engines.ts'
import { request, startApp } from '../support/service.ts'

const open = { headers: { authorization: '' } }
const site = { basePath: '/store/v1/', assets: '/store/v1/docs/static/x/' }

/** The text of each element of a kind. */
function read(html: string, element: string): string[] {
  const found = html.matchAll(new RegExp(`<${element}[^>]*>(.*?)</${element}>`, 'gs'))
  const entities = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"' }
  return [...found].map(([, inner = '']) =>
    inner.replace(/<[^>]*>/g, '').replace(/&\w+;/g, (entity) => entities[entity as keyof typeof entities]),
  )
}

for (const basePath of ['/', '/store/v1/'])
  test(`below ${basePath} each type of problem has its page there, for everyone`, async (t) => {
    const { url } = await startApp(t, await sqlite.createDatabase(t), { env: { BASE_PATH: basePath } })
    for (const [name, { title, status }] of Object.entries(problemTypes)) {
      const target = `${url}${basePath}problems/${name}`
      const page = await request(target, open)
      t.equal(page.status, 200, name)
      t.match(page.headers.get('content-type'), /^text\/html/)
      t.same(read(page.text, 'h1'), [title])
      t.match(page.text, `Problem · ${status}`)
      const shown = read(page.text, 'pre').map((example) => JSON.parse(example))
      const expected = problemExamples[name as ProblemTypeName]
      t.same(
        shown,
        expected.map((example) => ({ ...example, type: `${basePath}problems/${name}` })),
      )
      const head = await request(target, { ...open, method: 'HEAD' })
      t.match([head.status, head.text], [200, ''])
      t.equal(head.headers.get('etag'), page.headers.get('etag'))
    }
  })

test('a problem leads to its page', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t), { env: { BASE_PATH: '/store/v1' } })
  const problem = (await request(`${url}/store/v1/plants`, { body: {} })).json() as {
    type: string
    title: string
  }
  const page = await request(new URL(problem.type, url).href, open)
  t.same(read(page.text, 'h1'), [problem.title])
})

test('other problems have no page, and the pages have no other methods', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t))
  for (const path of ['problems', 'problems/', 'problems/other', 'problems/__proto__', 'docs/other'])
    t.match(await request(`${url}/${path}`, open), { status: 404 }, path)
  const posted = await request(`${url}/problems/unread`, { ...open, method: 'POST' })
  t.match([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD'])
})

test('the pages may load what is served with them, and nothing else', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t))
  for (const path of ['docs', 'docs/guide', 'problems/unread']) {
    const { headers } = await request(`${url}/${path}`, open)
    const policy = String(headers.get('content-security-policy'))
    t.match(policy, "default-src 'none'", path)
    t.notMatch(policy, /unsafe|\*|https?:/)
    t.equal(headers.get('referrer-policy'), 'no-referrer')
  }
})

test('the guide is served as a page with its contents', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t))
  const page = await request(`${url}/docs/guide`, open)
  t.equal(page.status, 200)
  t.match(page.headers.get('content-type'), /^text\/html/)
  t.equal(read(page.text, 'h1').length, 1)
  t.same(
    read(page.text.replace(/.*<nav class="contents".*?<\/h2>(.*?)<\/nav>.*/s, '$1'), 'li'),
    read(page.text, 'h2').slice(1),
  )
})

test('headings of the guide can be linked to, those that come twice as well', async (t) => {
  const html = renderPage(site, '# Guide\n## Paging & `limit`\n## Retries\n### Deep\n## Retries\n')
  t.match(html, '<h2 id="paging--limit">Paging &amp; <code>limit</code></h2>')
  t.match(html, '<h2 id="retries">')
  t.match(html, '<h2 id="retries-1">')
  t.match(html, '<li><a href="#retries-1">Retries</a></li>')
  t.notMatch(html, 'href="#deep"')
})

const links: [href: string, served: string | undefined][] = [
  ['https://www.rfc-editor.org/rfc/rfc9110', 'https://www.rfc-editor.org/rfc/rfc9110'],
  ['https://a.test/?a=1&b="', 'https://a.test/?a=1&amp;b=%22'],
  ['#retries', '#retries'],
  ['../openapi.yaml', '/store/v1/openapi.yaml'],
  ['../openapi-3.0.json', '/store/v1/openapi-3.0.json'],
  ['problems/id-conflict', '/store/v1/problems/id-conflict'],
  ['contract.md', '/store/v1/docs/contract'],
  ['guide.md#retries', '/store/v1/docs/guide#retries'],
  ['../examples/python.py', '/store/v1/docs/examples/python.py'],
  ['operating.md', undefined],
  ['../client/README.md', undefined],
  ['javascript:alert(1)', undefined],
]

test('links of the guide lead where the page is, and are text where nothing is served', async (t) => {
  for (const [href, served] of links) {
    const html = renderPage(site, `[the *text*](<${href}>)`)
    if (served === undefined) t.match(html, '<p>the <em>text</em></p>', href)
    else t.ok(html.includes(`<p><a href="${served}">the <em>text</em></a></p>`), href)
  }
})

test('what is wide in the guide can be scrolled by keyboard', async (t) => {
  const html = renderPage(site, '| a |\n|---|\n| b |\n\n```sh\ncurl\n```\n')
  t.match(html, '<div class="wide" tabindex="0"><table>')
  t.match(html, '<pre tabindex="0"><code')
})
