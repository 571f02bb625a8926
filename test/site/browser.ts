// A real browser. Every page has storage of its own.
import sparticuz from '@sparticuz/chromium'
import { type Browser, chromium } from 'playwright-core'

/** A name that is not localhost: for a browser a page there is no secure context. */
export const plainHost = 'plants.test'

export async function launchBrowser(): Promise<Browser> {
  return await chromium.launch({
    executablePath: await sparticuz.executablePath(),
    args: [
      '--no-sandbox',
      '--no-zygote',
      '--disable-gpu',
      `--host-resolver-rules=MAP ${plainHost} 127.0.0.1`,
    ],
    headless: true,
  })
}
