// Uses the page /docs as a reader does.
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import type { Test } from 'tap'

/** Opens a page, by default 1280 pixels wide, and waits until it shows the operations. `faults`: all failures on the page. */
export async function openDocs(t: Test, browser: Browser, url: string, options: BrowserContextOptions = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options })
  const faults: string[] = []
  t.teardown(async () => {
    // The error of a locator that times out does not show the page.
    if (!t.passing()) console.error(page.url(), faults, await page.textContent('body'))
    await page.close()
  })
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

export const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }

export const operation = (page: Page, operationId: string) => page.locator(`[id$=-${operationId}]`)

/** Pastes a token into the dialog. */
export async function authorize(page: Page, token: string): Promise<void> {
  await page.click('.scheme-container .authorize')
  await page.fill('.modal-ux input', token)
  await page.keyboard.press('Enter')
  await page.click('.modal-ux .btn-done')
}

/** Opens and executes an operation. Resolves to the status and body that the page shows. */
export async function execute(page: Page, operationId: string, body?: string) {
  const block = operation(page, operationId)
  await block.locator('.opblock-summary-control').click()
  if (body !== undefined) await block.locator('textarea.body-param__text').fill(body)
  await block.locator('.execute').click()
  return await readAnswer(page, operationId)
}

export async function readAnswer(page: Page, operationId: string): Promise<[status: string, body: string]> {
  const answer = operation(page, operationId).locator('.live-responses-table .response').first()
  const status = await answer.locator('.response-col_status').textContent()
  const shown = await answer.locator('.response-col_description .highlight-code code').textContent()
  return [String(status).trim(), String(shown)]
}
