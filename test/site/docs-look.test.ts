// The docs page in a real browser: how it looks, for whom, and what it costs to load.
import axe from 'axe-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import tap, { type Test, test } from 'tap'
import { launchBrowser } from '../support/browser.ts'
import { authorize, execute, openDocs, operation, phone } from '../support/docs-page.ts'
import { sqlite } from '../support/engines.ts'
import { isFull } from '../support/full.ts'
import { startApp, token } from '../support/service.ts'

let browser: Browser
let url: string

test('start a browser and a service', async (t) => {
  browser = await launchBrowser()
  t.ok(browser.isConnected())
  const { port } = await startApp(tap, await sqlite.createDatabase(tap))
  url = `http://localhost:${port}`
})

test('the page loads nothing from elsewhere, and at most 0.6 MB', async (t) => {
  const { page, faults } = await openDocs(t, browser, `${url}/docs`)
  const loaded = (await page.evaluate(
    '[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]' +
      '.map(({ name, transferSize }) => [name, transferSize])',
  )) as [string, number][]
  const ours = loaded.filter(([name]) => name.startsWith(`${url}/`))
  t.ok(ours.length > 7)
  t.same(
    loaded.filter((entry) => !ours.includes(entry) && !entry[0].startsWith('data:')),
    [],
  )
  const bytes = ours.reduce((sum, [, size]) => sum + size, 0)
  t.ok(bytes > 200_000 && bytes < 600_000, `${bytes} bytes`)
  t.equal(await page.title(), 'Plant Store')
  t.same(faults, [])
  await t.test('an opened operation is not longer than it must be, and each error has its example', (t) =>
    assertShort(t, page),
  )
})

async function assertShort(t: Test, page: Page): Promise<void> {
  for (const name of ['createPlant', 'listPlants', 'headPlants']) {
    const block = operation(page, name)
    await block.locator('.opblock-summary-control').click()
    await block.locator('.error-row').last().waitFor()
    const { height = 0 } = (await block.boundingBox()) ?? {}
    t.ok(height > 500 && height <= 2600, `${name}: ${height} px`)
  }
  const row = operation(page, 'createPlant').locator('[data-code="409"]')
  t.equal(await row.locator('pre').isVisible(), false)
  await row.locator('summary').click()
  t.match(JSON.parse(String(await row.locator('pre').textContent())), { type: '/problems/id-conflict' })
  t.equal(await row.locator('a').getAttribute('href'), '/problems/id-conflict')
}

type Styles = { getComputedStyle: (element: unknown) => { backgroundColor: string } }

const schemes = { light: [200, 255], dark: [0, 60] } as const
type Scheme = keyof typeof schemes

/** Asserts that the page is of this scheme from edge to edge. */
async function assertColours(t: Test, page: Page, scheme: Scheme): Promise<void> {
  const [least, most] = schemes[scheme]
  for (const selector of ['body', '.opblock', 'header', 'textarea']) {
    const colour = await page
      .locator(selector)
      .first()
      .evaluate((element) => (globalThis as unknown as Styles).getComputedStyle(element).backgroundColor)
    const parts = colour.match(/\d+/g)?.map(Number) ?? []
    t.equal(parts.length, 3, `${selector}: ${colour}`)
    for (const part of parts) t.ok(part >= least && part <= most, `${selector}: ${colour}`)
  }
}

test('a page whose contract cannot be loaded says so', async (t) => {
  const page = await browser.newPage()
  t.teardown(() => page.close())
  await page.route('**/openapi.json', (route) => route.abort())
  await page.goto(`${url}/docs`)
  await page.getByText('The operations could not be loaded. Reload the page.').waitFor()
  t.ok(await page.locator('.steps').isVisible())
})

type Finding = { id: string; impact: string; nodes: { target: string[] }[] }

/** What axe finds on a page as it is now, or below a selector of it, as lines. */
async function findBarriers(page: Page, below = 'html'): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate(
    `axe.run('${below}', { resultTypes: ['violations'], preload: false })`,
  )) as { violations: Finding[] }
  return violations.flatMap(({ id, impact, nodes }) =>
    nodes.map(({ target }) => `${impact} ${id} ${target.join(' ')}`),
  )
}

/** Both schemes and both devices; in full each with each. */
const looks: [scheme: Scheme, device: string, options: BrowserContextOptions][] = [
  ['light', 'desk', {}],
  ['dark', 'phone', phone],
  ['light', 'phone', phone],
  ['dark', 'desk', {}],
]

for (const [colorScheme, device, options] of looks.slice(0, isFull ? 4 : 2))
  test(`the ${colorScheme} pages on a ${device} fill the screen and are accessible`, async (t) => {
    const { page } = await openDocs(t, browser, `${url}/docs`, { ...options, colorScheme })
    const fits = async () => {
      if (options === phone) t.equal(await page.evaluate('document.documentElement.scrollWidth'), 390)
    }
    await fits()
    if (isFull) t.same(await findBarriers(page), [], 'as it comes')
    await openAtOnce(page, 'headPlants')
    t.same(await findBarriers(page, '[id$=-headPlants]'), [], 'while Execute is being enabled')
    for (const name of ['createPlant', 'listPlants']) await execute(page, name)
    await fits()
    await assertColours(t, page, colorScheme)
    await operation(page, 'createPlant').locator('.documented > summary').click()
    await operation(page, 'createPlant').locator('[data-code="400"] summary').click()
    t.same(await findBarriers(page), [], 'with operations opened and refused')
    await operation(page, 'createPlant').locator('.tablinks[data-name="model"]').first().click()
    if (isFull) t.same(await findBarriers(page), [], 'with a schema')
    await page.click('header [data-authorize]')
    if (isFull) t.same(await findBarriers(page), [], 'with the dialog')
    await page.fill('#token', 'wrong')
    await page.keyboard.press('Enter')
    await page.waitForSelector('#verdict.bad')
    t.same(await findBarriers(page, isFull ? 'html' : '#authorize'), [], 'with a verdict')
    for (const path of ['docs/guide', 'problems/invalid-request']) {
      await page.goto(`${url}/${path}`)
      await fits()
      t.same(await findBarriers(page), [], path)
    }
  })

/** Opens an operation; resolves in the moment in which it can be executed, with what of Execute is still to change. */
async function openAtOnce(page: Page, operationId: string): Promise<void> {
  await page.evaluate(`new Promise((resolve) => {
    const block = document.querySelector('[id$=-${operationId}]')
    new MutationObserver((_, observer) => {
      if (!block.querySelector('.execute:enabled')) return
      observer.disconnect()
      resolve()
    }).observe(block, { attributes: true, childList: true, subtree: true })
    block.querySelector('.opblock-summary-control').click()
  })`)
}

test("the dialog's buttons stand in one line", async (t) => {
  const { page } = await openDocs(t, browser, `${url}/docs`)
  await authorize(page, `Bearer ${token}`)
  await page.click('header [data-authorize]')
  const boxes = await page
    .locator('dialog .buttons button')
    .evaluateAll((all) => (all as unknown as Boxed[]).map((one) => one.getBoundingClientRect().y))
  t.equal(boxes.length, 3)
  t.equal(new Set(boxes).size, 1)
})

type Boxed = { getBoundingClientRect: () => { y: number } }

test('close the browser', async (t) => {
  await browser.close()
  t.notOk(browser.isConnected())
})
