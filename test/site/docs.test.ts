// The page /docs (Swagger UI) in a real browser.
import axe from 'axe-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import tap, { before, type Test, test } from 'tap'
import { request, startApp, token } from '../support/service.ts'
import { launchBrowser, plainHost } from './browser.ts'
import { authorize, execute, openDocs, operation, phone, readAnswer } from './docs-page.ts'

let browser: Browser
/** The service of tests that do not depend on its plants. */
let url: string

before(async () => {
  browser = await launchBrowser(tap)
  url = `http://localhost:${(await startApp(tap)).port}`
})

const plant = { name: 'Black alder', tag: 'Alnus glutinosa' }

test('over plain http on another address, below a base path, a pasted token is used', async (t) => {
  const basePath = '/store/v1'
  const { port, url } = await startApp(t, undefined, { env: { BASE_PATH: basePath } })
  const { page, faults } = await openDocs(t, browser, `http://${plainHost}:${port}${basePath}/docs`)
  t.equal(await page.evaluate('isSecureContext'), false)
  await authorize(page, ` Bearer ${token}\n`)
  const [added, body] = await execute(page, 'createPlant', JSON.stringify({ ...plant, id: 7 }))
  t.same([added, JSON.parse(body)], ['200', plant])
  const asked = page.waitForRequest((request) => request.url().includes('/plants?'))
  const [listed, list] = await execute(page, 'listPlants')
  t.same([listed, JSON.parse(list)], ['200', [plant]])
  const sent = await asked
  t.notMatch(sent.url(), /after=/, 'an empty field is not sent')
  t.notOk('if-none-match' in sent.headers())
  t.same((await request(`${url}${basePath}/plants`)).json(), [plant])
  t.same(faults, [])
  await t.test('an error links to its page', async (t) => {
    const block = operation(page, 'createPlant')
    await block.locator('textarea.body-param__text').fill('{}')
    await block.locator('.execute').click()
    await block.locator('.explanation a').click()
    await page.getByRole('heading', { name: 'Invalid request' }).waitFor()
    t.equal(new URL(page.url()).pathname, `${basePath}/problems/invalid-request`)
  })
})

test('a token is kept only in its tab until Logout, and without one the page says how to create one', async (t) => {
  const { page } = await openDocs(t, browser, `${url}/docs`)
  t.equal((await execute(page, 'createPlant'))[0], '401')
  const explanation = await operation(page, 'createPlant').locator('.explanation').textContent()
  t.match(explanation, /select Authorize.*npx plant-store token create --name laptop/)
  await authorize(page, token)
  t.same(await page.evaluate('Object.values(sessionStorage)'), [token])
  t.equal(await page.evaluate('localStorage.length + document.cookie.length'), 0)
  for (const path of ['/', '/docs']) await page.goto(url + path)
  await page.waitForSelector('.scheme-container .authorize.locked')
  t.equal((await execute(page, 'listPlants'))[0], '200')
  const other = await browser.newPage()
  await other.goto(`${url}/docs`)
  t.equal(await other.evaluate('sessionStorage.length'), 0)
  await other.close()
  await page.bringToFront()
  await page.click('.scheme-container .authorize')
  await page.click('.modal-ux .auth-btn-wrapper .btn:has-text("Logout")')
  t.equal(await page.evaluate('sessionStorage.length'), 0)
  await page.click('.modal-ux .btn-done')
  await operation(page, 'listPlants').locator('.execute').click()
  await page.waitForSelector('.explanation')
})

test('Execute works as soon as it is enabled, and the page loads less than 0.8 MB, all of it from the service', async (t) => {
  const { page, faults } = await openDocs(t, browser, `${url}/docs`)
  const loaded = (await page.evaluate(
    'performance.getEntriesByType("resource").map(({ name, transferSize }) => [name, transferSize])',
  )) as [string, number][]
  const others = loaded.filter(([name]) => !name.startsWith(`${url}/`) && !name.startsWith('data:'))
  t.same(others, [])
  const bytes = loaded.reduce((sum, [, size]) => sum + size, 0)
  t.ok(bytes > 200_000 && bytes < 800_000, `${bytes} bytes`)
  await authorize(page, token)
  for (const operationId of ['createPlant', 'listPlants']) {
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
    t.equal((await readAnswer(page, operationId))[0], '200', operationId)
  }
  t.same(faults, [])
})

/** Presses Tab until an element that matches has the focus. Throws if an element with the focus has no outline. */
async function tabTo(page: Page, selector: string): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press('Tab')
    if (await page.evaluate('getComputedStyle(document.activeElement).outlineStyle === "none"'))
      throw new Error(`no outline: ${await page.evaluate('document.activeElement.outerHTML')}`)
    if (await page.evaluate(`document.activeElement.matches(${JSON.stringify(selector)})`)) return
  }
  throw new Error(`Tab does not reach ${selector}`)
}

test('authorizing and adding a plant work with the keyboard only', async (t) => {
  const { page, faults } = await openDocs(t, browser, `${url}/docs`)
  await page.keyboard.press('Tab')
  t.equal(await page.evaluate('document.activeElement.className'), 'skip')
  await tabTo(page, '.scheme-container .authorize')
  await page.keyboard.press('Enter')
  await page.locator('.modal-ux input').focus()
  await page.keyboard.type(token)
  await page.keyboard.press('Enter')
  await tabTo(page, '.modal-ux .btn-done')
  await page.keyboard.press('Enter')
  await tabTo(page, '[id$=-createPlant] .opblock-summary-control')
  await page.keyboard.press('Enter')
  await operation(page, 'createPlant').locator('textarea').waitFor()
  await tabTo(page, 'textarea')
  await page.keyboard.press('Control+A')
  await page.keyboard.type('{"name":"a","tag":""}')
  await tabTo(page, '.execute')
  await page.keyboard.press('Enter')
  t.equal((await readAnswer(page, 'createPlant'))[0], '200')
  t.same(faults, [])
})

/** Rules that Swagger UI itself violates. */
const ofSwagger = [
  'button-name',
  'heading-order',
  'label-content-name-mismatch',
  'landmark-unique',
  'nested-interactive',
  'region',
  'scrollable-region-focusable',
]

type Finding = { id: string; nodes: { target: string[] }[] }

/** Lists the findings of axe on a page or in a part of it, except those of some rules. */
async function findBarriers(page: Page, except: string[] = [], within = 'html'): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate(`axe.run('${within}', { resultTypes: ['violations'] })`)) as {
    violations: Finding[]
  }
  const found = violations.filter(({ id }) => !except.includes(id))
  return found.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id} ${target.join(' ')}`))
}

const looks: [scheme: 'light' | 'dark', device: string, options: BrowserContextOptions][] = [
  ['light', 'desktop', {}],
  ['dark', 'phone', phone],
]

for (const [colorScheme, device, options] of looks)
  test(`the ${colorScheme} pages fit a ${device} and are accessible`, async (t) => {
    const { page } = await openDocs(t, browser, `${url}/docs`, { ...options, colorScheme, bypassCSP: true })
    const fits = async (what: string) =>
      t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${what} fits`)
    await fits('at first')
    for (const name of ['createPlant', 'listPlants']) await execute(page, name)
    await operation(page, 'createPlant').locator('.documented > summary').click()
    await fits('with answers')
    t.same(await findBarriers(page, ofSwagger), [], 'with answers')
    await assertColours(t, page, colorScheme)
    await page.click('.scheme-container .authorize')
    t.same(await findBarriers(page, ofSwagger, '.dialog-ux'), [], 'with the dialog')
    for (const path of ['', 'docs/guide', 'problems/invalid-request']) {
      await page.goto(`${url}/${path}`)
      await fits(`/${path}`)
      t.same(await findBarriers(page), [], `/${path}`)
    }
  })

async function assertColours(t: Test, page: Page, scheme: 'light' | 'dark'): Promise<void> {
  const [least, most] = { light: [200, 255], dark: [0, 60] }[scheme] as [number, number]
  for (const selector of ['body', '.opblock', 'header', 'textarea']) {
    const colour = await page.evaluate(
      `getComputedStyle(document.querySelector('${selector}')).backgroundColor`,
    )
    const parts = String(colour).match(/\d+/g)?.map(Number) ?? []
    t.ok(parts.length === 3 && parts.every((part) => part >= least && part <= most), `${selector}: ${colour}`)
  }
}
