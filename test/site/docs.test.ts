// The docs page in a real browser: what a reader can do there.
import type { Browser, Page, Request } from 'playwright-core'
import tap, { type Test, test } from 'tap'
import { launchBrowser, plainHost } from '../support/browser.ts'
import { authorize, execute, openDocs, operation, readAnswer } from '../support/docs-page.ts'
import { sqlite } from '../support/engines.ts'
import { isFull } from '../support/full.ts'
import { request, startApp, token } from '../support/service.ts'

let browser: Browser
/** Of a service whose plants nobody looks at. */
let docs: string

test('start a browser and a service', async (t) => {
  browser = await launchBrowser()
  t.ok(browser.isConnected())
  const { port } = await startApp(tap, await sqlite.createDatabase(tap))
  docs = `http://localhost:${port}/docs`
})

const plant = { name: 'Black alder', tag: 'Alnus glutinosa' }

/** What nobody filled in is not sent. */
async function assertBare(t: Test, page: Page, sent: Request): Promise<void> {
  t.notMatch(sent.url(), /after=/)
  for (const name of ['if-match', 'if-none-match']) t.notOk(name in sent.headers(), name)
  for (const name of ['after', 'If-Match', 'If-None-Match'])
    t.equal(await operation(page, 'listPlants').locator(`input[placeholder="${name}"]`).inputValue(), '')
}

const places: [title: string, host: string, basePath: string][] = [
  ['at home', 'localhost', ''],
  ['over plain http on another address, under a base path', plainHost, '/store/v1'],
  ['over plain http on another address', plainHost, ''],
]

for (const [title, host, basePath] of places.slice(0, isFull ? 3 : 2))
  test(`${title}, a plant is added and listed on the docs page`, async (t) => {
    const { port, url } = await startApp(t, await sqlite.createDatabase(t), {
      env: { BASE_PATH: basePath || '/' },
    })
    const origin = `http://${host}:${port}`
    const { page, faults } = await openDocs(t, browser, `${origin}${basePath}/`)
    t.equal(new URL(page.url()).pathname, `${basePath}/docs`)
    t.equal(await page.evaluate('isSecureContext'), host === 'localhost')
    t.ok(String(await page.locator('.steps').textContent()).includes(`curl ${origin}${basePath}/plants`))
    t.match(await authorize(page, `Bearer ${token}`), /^The token is valid.*200/)
    const added = await execute(page, 'createPlant', JSON.stringify({ ...plant, id: 7 }))
    t.equal(added[0], '200')
    t.same(JSON.parse(added[1]), plant)
    await assertCommand(t, page)
    const asked = page.waitForRequest((request) => request.url().includes('/plants?'))
    const listed = await execute(page, 'listPlants')
    t.equal(listed[0], '200')
    t.same(JSON.parse(listed[1]), [plant])
    await assertBare(t, page, await asked)
    t.same((await request(`${url}${basePath}/plants`)).json(), [plant])
    t.same(faults, [])
    await t.test('an error leads to what it means', (t) => assertExplained(t, page, basePath))
  })

/** The focus is on the answer, whose command can be copied and has no token. */
async function assertCommand(t: Test, page: Page): Promise<void> {
  t.equal(await page.evaluate("document.activeElement.getAttribute('aria-label')"), 'Answer')
  const block = operation(page, 'createPlant')
  const command = String(await block.locator('.command code').textContent())
  t.match(command, '-H "Authorization: Bearer $TOKEN"')
  t.notOk((await page.content()).includes(token), 'the token is nowhere on the page')
  await page.evaluate("document.addEventListener('copy', () => (globalThis.copied = String(getSelection())))")
  if (await page.evaluate('isSecureContext'))
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await block.locator('.copy').click()
  await block.locator('.copy:has-text("Copied")').waitFor()
  const copied = await page.evaluate('globalThis.copied ?? navigator.clipboard.readText()')
  t.equal(String(copied).trim(), command.trim())
}

/** On a page on which a plant was added. */
async function assertExplained(t: Test, page: Page, basePath: string): Promise<void> {
  const block = operation(page, 'createPlant')
  await block.locator('textarea.body-param__text').fill('{}')
  await block.locator('.execute').click()
  await block.locator('.explanation a').waitFor()
  t.equal((await readAnswer(page, 'createPlant'))[0], '400')
  await block.locator('.explanation a').click()
  await page.getByRole('heading', { name: 'Invalid request' }).waitFor()
  t.equal(new URL(page.url()).pathname, `${basePath}/problems/invalid-request`)
}

test('every link of the pages leads somewhere', async (t) => {
  const { url } = await startApp(t, await sqlite.createDatabase(t), { env: { BASE_PATH: '/store/v1' } })
  const seen = new Set([`${url}/store/v1/docs`])
  for (const page of seen) {
    const { status, text, headers } = await request(page, { headers: { authorization: '' } })
    t.equal(status, 200, page)
    t.notMatch(text, /<(?:p|td|li)>[^<]*\b[a-z]+\.md\b/, 'no name of a file that is not served')
    if (!headers.get('content-type')?.startsWith('text/html')) continue
    for (const [, href = ''] of text.matchAll(/ (?:href|src)="([^"#][^"]*)"/g)) {
      const target = new URL(href, page)
      if (target.origin === url) seen.add(target.href.replace(/#.*/, ''))
    }
    for (const [, id] of text.matchAll(/ href="#([^"]+)"/g))
      t.ok(text.includes(` id="${id}"`), `${page}#${id}`)
  }
  t.ok(seen.size > 24)
})

/** Opens an operation, and clicks on Execute in the very moment in which it is enabled. */
async function executeAtOnce(page: Page, operationId: string): Promise<void> {
  await page.evaluate(`{
    const block = document.querySelector('[id$=-${operationId}]')
    const observer = new MutationObserver(() => {
      const button = block.querySelector('.execute:enabled')
      if (button) observer.disconnect()
      button?.click()
    })
    observer.observe(block, { attributes: true, childList: true, subtree: true })
    block.querySelector('.opblock-summary-control').click()
  }`)
}

test('a click on Execute works as soon as it is enabled', async (t) => {
  const { page, faults } = await openDocs(t, browser, docs)
  await authorize(page, token)
  for (const operationId of ['createPlant', 'listPlants']) {
    await executeAtOnce(page, operationId)
    t.equal((await readAnswer(page, operationId))[0], '200', operationId)
  }
  t.same(faults, [])
})

/** Presses Tab until the focus is where it should be. */
async function tabTo(page: Page, selector: string): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press('Tab')
    if (await page.evaluate(`document.activeElement.matches(${JSON.stringify(selector)})`)) return
  }
  throw new Error(`Tab does not lead to ${selector}`)
}

test('the keyboard suffices to authorize and to add a plant', async (t) => {
  const { port, url } = await startApp(t, await sqlite.createDatabase(t))
  const { page, faults } = await openDocs(t, browser, `http://localhost:${port}/docs`)
  await page.keyboard.press('Tab')
  t.equal(await page.evaluate('document.activeElement.className'), 'skip')
  await tabTo(page, '[data-state]')
  await page.keyboard.press('Enter')
  await page.keyboard.type(token)
  await page.keyboard.press('Enter')
  await page.waitForSelector('#verdict.good')
  for (let presses = 0; presses < 8; presses++) {
    await page.keyboard.press('Tab')
    // Between its last and its first element the focus is the browser's own for one step.
    t.ok(
      await page.evaluate(
        'document.activeElement === document.body || !!document.activeElement.closest("dialog")',
      ),
    )
  }
  await page.keyboard.press('Escape')
  t.equal(await page.locator('#authorize').isVisible(), false)
  t.ok(await page.evaluate('document.activeElement.matches("[data-state]")'), 'back where it was opened')
  await tabTo(page, '[id$=-createPlant] .opblock-summary-control')
  await page.keyboard.press('Enter')
  await operation(page, 'createPlant').locator('textarea').waitFor()
  await tabTo(page, 'textarea')
  await page.keyboard.press('Control+A')
  await page.keyboard.type('{"name":"a","tag":""}')
  await tabTo(page, '.execute')
  await page.keyboard.press('Enter')
  t.equal((await readAnswer(page, 'createPlant'))[0], '200')
  t.same((await request(`${url}/plants`)).json(), [{ name: 'a', tag: '' }])
  t.same(faults, [])
})

test('close the browser', async (t) => {
  await browser.close()
  t.notOk(browser.isConnected())
})
