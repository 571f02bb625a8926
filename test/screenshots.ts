// npm run screenshots: takes the pictures of the docs page in docs/images/ anew.
import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { buildApp } from '../src/app.ts'
import { noMeter } from '../src/metrics.ts'
import { loadSettings } from '../src/settings.ts'
import { Tokens } from '../src/tokens/tokens.ts'
import { makeVerifier } from '../src/tokens/verifier.ts'
import { launchBrowser } from './site/browser.ts'
import { authorize, execute, operation, phone } from './site/docs-page.ts'
import { token } from './support/service.ts'
import { openStore } from './support/stores.ts'

type Scrolling = { scrollIntoView: () => void }
type Picture = { path: '' | 'docs'; options: BrowserContextOptions; prepare?: (page: Page) => Promise<void> }

const desk = { viewport: { width: 1280, height: 860 } }

const pictures: Record<string, Picture> = {
  docs: { path: '', options: desk },
  'docs-phone': { path: '', options: { ...phone, deviceScaleFactor: 2 } },
  'docs-dark': { path: 'docs', options: { ...desk, colorScheme: 'dark' }, prepare: addPlant },
  'docs-error': { path: 'docs', options: desk, prepare: showError },
}

async function addPlant(page: Page): Promise<void> {
  await authorize(page, token)
  await execute(page, 'createPlant')
}

/** A plant that is refused for three reasons at once. */
async function showError(page: Page): Promise<void> {
  await authorize(page, token)
  await execute(page, 'createPlant', '{"colour": "green", "name": "", "tag": 5}')
  await page.evaluate('document.activeElement.blur()')
  const answer = operation(page, 'createPlant').locator('.explanation')
  await answer.evaluate((element) => (element as unknown as Scrolling).scrollIntoView())
}

const home = await mkdtemp(join(tmpdir(), 'plant-store-'))
const logger = pino({ level: 'silent' })
const store = await openStore(`file:${home}/plants.db`, { logger })
const { settings } = loadSettings({}, { ACCESS_TOKENS: token })
const verify = makeVerifier(new Tokens(store.tokens), { accessTokens: [token], logger })
const app = await buildApp({ log: store.log, settings, verify, logger, meter: noMeter, mask: String })
await app.listen({ host: '127.0.0.1', port: 0 })
const { port } = app.server.address() as AddressInfo
const browser = await launchBrowser()
for (const [name, { path, options, prepare }] of Object.entries(pictures)) {
  const page = await browser.newPage(options)
  await page.goto(`http://127.0.0.1:${port}/${path}`)
  if (path === 'docs') await page.waitForSelector('[id$=-createPlant]')
  await prepare?.(page)
  // The address that readers have, whatever port was free here.
  await page.evaluate(
    'for (const origin of document.querySelectorAll("[data-origin]")) origin.textContent = "http://127.0.0.1:3000"',
  )
  await page.screenshot({ path: fileURLToPath(new URL(`../docs/images/${name}.png`, import.meta.url)) })
  await page.close()
}
await browser.close()
await app.close()
await store.close()
await rm(home, { recursive: true })
