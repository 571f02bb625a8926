// A real browser, which closes when the test ends. Each page has its own storage.
import sparticuz from '@sparticuz/chromium'
import { type Browser, chromium } from 'playwright-core'
import type { Test } from 'tap'

/** A host other than localhost: pages there are not a secure context. */
export const plainHost = 'plants.test'

export async function launchBrowser(t: Test): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: await sparticuz.executablePath(),
    args: [
      '--no-sandbox',
      '--no-zygote',
      '--disable-gpu',
      // Pages are too short-lived for optimized code to pay off.
      '--js-flags=--no-opt --no-maglev',
      `--host-resolver-rules=MAP ${plainHost} 127.0.0.1`,
    ],
    headless: true,
  })
  t.teardown(() => browser.close())
  return browser
}
