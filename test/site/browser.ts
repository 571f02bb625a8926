// A real browser, which closes when the test ends. Every page has storage of its own.
import sparticuz from '@sparticuz/chromium'
import { type Browser, chromium } from 'playwright-core'
import type { Test } from 'tap'

/** A name that is not localhost: for a browser a page there is no secure context. */
export const plainHost = 'plants.test'

export async function launchBrowser(t: Pick<Test, 'teardown'>): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: await sparticuz.executablePath(),
    args: [
      '--no-sandbox',
      '--no-zygote',
      '--disable-gpu',
      `--host-resolver-rules=MAP ${plainHost} 127.0.0.1`,
    ],
    headless: true,
  })
  t.teardown(() => browser.close())
  return browser
}
