// npm run screenshots: retakes docs/images/docs.png, the page /docs after a plant was added.
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { launchBrowser } from './site/browser.ts'
import { authorize, execute, openDocs } from './site/docs-page.ts'
import { startApp, token } from './support/service.ts'

test('take the screenshot', async (t) => {
  const { url } = await startApp(t)
  const viewport = { width: 1280, height: 1000 }
  const { page } = await openDocs(t, await launchBrowser(t), `${url}/docs`, { viewport })
  await authorize(page, token)
  await execute(page, 'createPlant')
  await page.evaluate('scrollTo(0, 0)')
  await page.screenshot({ path: fileURLToPath(new URL('../docs/images/docs.png', import.meta.url)) })
})
