// The docs page in a real browser.
import { fileURLToPath } from 'node:url'
import sparticuz from '@sparticuz/chromium'
import { type Browser, chromium, type Page } from 'playwright-core'
import { type Test, test } from 'tap'
import { sqlite } from './support/engines.ts'
import { request, startApp, token } from './support/service.ts'

const screenshot = fileURLToPath(new URL('../docs/swagger-ui.png', import.meta.url))

let browser: Browser

test('a browser', async (t) => {
  browser = await chromium.launch({
    executablePath: await sparticuz.executablePath(),
    // A name that is not localhost: for a browser the page is no secure context then.
    args: ['--no-sandbox', '--no-zygote', '--disable-gpu', '--host-resolver-rules=MAP plants.test 127.0.0.1'],
    headless: true,
  })
  t.ok(browser.isConnected())
})

/** Opens a page and collects everything that is wrong with it. */
async function open(t: Test, url: string): Promise<{ page: Page; faults: string[] }> {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 } })
  t.teardown(() => page.close())
  const faults: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(message.text())
  })
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('requestfailed', (failed) => faults.push(`${failed.url()} failed`))
  page.on('response', (response) => {
    if (response.status() >= 400) faults.push(`${response.url()}: ${response.status()}`)
  })
  await page.goto(url)
  await page.waitForSelector('[id$=-createPlant]')
  return { page, faults }
}

async function authorize(page: Page): Promise<void> {
  await page.click('.auth-wrapper .authorize')
  await page.fill('#auth-bearer-value', token)
  await page.click('.modal-ux .auth-btn-wrapper .authorize')
  await page.click('.modal-ux .btn-done')
}

/** Executes an operation and resolves to the status and body that the page shows. */
async function execute(
  page: Page,
  operationId: string,
  body?: string,
): Promise<[status: string, body: string]> {
  const operation = page.locator(`[id$=-${operationId}]`)
  await operation.locator('.opblock-summary-control').click()
  if (body !== undefined) await operation.locator('textarea.body-param__text').fill(body)
  else await operation.locator('input[placeholder="limit"]').fill('')
  await operation.locator('.execute').click()
  const answer = operation.locator('.live-responses-table .response').first()
  const status = await answer.locator('.response-col_status').textContent()
  const shown = await answer.locator('.response-col_description .highlight-code code').textContent()
  return [String(status).trim(), String(shown)]
}

const plant = { name: 'Black alder', tag: 'Alnus glutinosa' }

const places: [title: string, host: string, basePath: string][] = [
  ['at home', 'localhost', ''],
  ['over plain http on another address', 'plants.test', ''],
  ['under a base path', 'plants.test', '/store/v1'],
]

for (const [title, host, basePath] of places)
  test(`${title}, a plant is added and listed on the docs page`, async (t) => {
    const { port, url } = await startApp(t, await sqlite.createDatabase(t), {
      env: { BASE_PATH: basePath || '/' },
    })
    const { page, faults } = await open(t, `http://${host}:${port}${basePath}/`)
    t.equal(new URL(page.url()).pathname, `${basePath}/docs`)
    t.equal(await page.evaluate('isSecureContext'), host === 'localhost')
    await authorize(page)
    const added = await execute(page, 'createPlant', JSON.stringify({ ...plant, id: 7 }))
    t.equal(added[0], '200')
    t.same(JSON.parse(added[1]), plant)
    const listed = await execute(page, 'listPlants')
    t.equal(listed[0], '200')
    t.same(JSON.parse(listed[1]), [plant])
    t.same((await request(`${url}${basePath}/plants`)).json(), [plant])
    t.same(faults, [])
  })

test('the page shows the document and loads nothing from elsewhere', async (t) => {
  const { port } = await startApp(t, await sqlite.createDatabase(t))
  const { page, faults } = await open(t, `http://localhost:${port}/docs`)
  const loaded = (await page.evaluate(
    'performance.getEntriesByType("resource").map(({ name }) => name)',
  )) as string[]
  t.ok(loaded.length > 3)
  t.same(
    loaded.filter((url) => !url.startsWith(`http://localhost:${port}/`) && !url.startsWith('data:')),
    [],
  )
  t.equal(await page.locator('.topbar').isVisible(), false)
  t.equal(await page.title(), 'Plant Store')
  t.match(await page.locator('.info .title').textContent(), /Plant Store/)
  t.same(faults, [])
  if (process.env.UPDATE_SCREENSHOT !== '1') return
  await authorize(page)
  await page.click('[id$=-createPlant] .opblock-summary-control')
  await page.waitForSelector('textarea.body-param__text')
  await page.evaluate('document.activeElement.blur(); scrollTo(0, 0)')
  await page.screenshot({ path: screenshot })
})

test('the browser goes', async (t) => {
  await browser.close()
  t.notOk(browser.isConnected())
})
