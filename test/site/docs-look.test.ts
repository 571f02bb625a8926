// The docs page in a real browser: how it looks, for whom, and what it costs to load.
import axe from 'axe-core'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import tap, { type Test, test } from 'tap'
import { launchBrowser } from '../support/browser.ts'
import { execute, openDocs, operation, phone } from '../support/docs-page.ts'
import { sqlite } from '../support/engines.ts'
import { isFull } from '../support/full.ts'
import { startApp } from '../support/service.ts'

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
    t.ok(height > 500 && height <= 2500, `${name}: ${height} px`)
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

/** What may stand: Swagger UI's own, that nobody is kept from anything by. */
const known: [rule: string, selector: string, reason: string][] = [
  ['heading-order', 'h4', 'Swagger UI writes h4 and h5, whatever the headings around it are'],
  ['landmark-unique', '.responses-table', 'Swagger UI makes each table of responses a region without a name'],
]

type Finding = { id: string; impact: string; nodes: { target: string[] }[] }

/** What axe finds on a page as it is now, or below a selector of it, as lines. */
async function findBarriers(page: Page, below = 'html'): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = (await page.evaluate(
    `axe.run('${below}', { resultTypes: ['violations'], preload: false })`,
  )) as { violations: Finding[] }
  const lines: string[] = []
  for (const { id, impact, nodes } of violations)
    for (const { target } of nodes) {
      const element = page.locator(target.join(' ')).first()
      const matches = (selector: string) =>
        element.evaluate((found, wanted) => (found as unknown as Matcher).matches(wanted), selector)
      const rules = known.filter(([rule]) => rule === id)
      const isKnown = (await Promise.all(rules.map(([, selector]) => matches(selector)))).includes(true)
      if (!isKnown) lines.push(`${impact} ${id} ${target.join(' ')}`)
    }
  return lines
}

type Matcher = { matches: (selector: string) => boolean }

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
    for (const name of ['createPlant', 'listPlants']) await execute(page, name)
    await fits()
    await assertColours(t, page, colorScheme)
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

test('close the browser', async (t) => {
  await browser.close()
  t.notOk(browser.isConnected())
})
