// npm run screenshots: retakes docs/images/docs.png, the page /docs after a plant was added.
import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import { buildApp } from '../src/app.ts'
import { noMeter } from '../src/metrics.ts'
import { loadSettings } from '../src/settings.ts'
import { Tokens } from '../src/tokens/tokens.ts'
import { makeVerifier } from '../src/tokens/verifier.ts'
import { launchBrowser } from './site/browser.ts'
import { authorize, execute } from './site/docs-page.ts'
import { token } from './support/service.ts'
import { openStore } from './support/stores.ts'

const home = await mkdtemp(join(tmpdir(), 'plant-store-'))
const logger = pino({ level: 'silent' })
const store = await openStore(`file:${home}/plants.db`, { logger })
const { settings } = loadSettings({}, { ACCESS_TOKENS: token })
const verify = makeVerifier(new Tokens(store.tokens), { accessTokens: [token], logger })
const app = await buildApp({ log: store.log, settings, verify, logger, meter: noMeter, mask: String })
await app.listen({ host: '127.0.0.1', port: 0 })
const { port } = app.server.address() as AddressInfo
const browser = await launchBrowser({ teardown: () => {} })
const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } })
await page.goto(`http://127.0.0.1:${port}/docs`)
await page.waitForSelector('[id$=-createPlant]')
await authorize(page, token)
await execute(page, 'createPlant')
await page.evaluate('scrollTo(0, 0)')
await page.screenshot({ path: fileURLToPath(new URL('../docs/images/docs.png', import.meta.url)) })
await browser.close()
await app.close()
await store.close()
await rm(home, { recursive: true })
