// The docs page in a real browser: how it takes a token, and what it says without one.
import type { Browser, Page } from 'playwright-core'
import tap, { type Test, test } from 'tap'
import { Tokens } from '../../src/tokens/tokens.ts'
import { startIssuer } from '../access/issuer.ts'
import { launchBrowser } from '../support/browser.ts'
import { authorize, execute, openDocs, operation } from '../support/docs-page.ts'
import { sqlite } from '../support/engines.ts'
import { startApp, token } from '../support/service.ts'
import type { Store } from '../support/sql-store.ts'

let browser: Browser
let port: number
let store: Store

test('start a browser and a service', async (t) => {
  browser = await launchBrowser()
  t.ok(browser.isConnected())
  ;({ port, store } = await startApp(tap, await sqlite.createDatabase(tap)))
})

const verdicts: [
  title: string,
  scopes: ('plants:read' | 'plants:write')[] | undefined,
  said: RegExp,
  kept: boolean,
][] = [
  ['a wrong one', undefined, /does not accept.*401 Unauthorized.*plant-store token create/s, false],
  [
    'one that may only add',
    ['plants:write'],
    /^The token is valid, but only for adding .*403 Forbidden/,
    true,
  ],
  ['a good one', ['plants:read'], /^The token is valid\. The answer was 200 OK/, true],
]

test('a token on one page', async (t) => {
  const { page } = await openDocs(t, browser, `http://localhost:${port}/docs`)
  await t.test('is not kept when it cannot be checked', (t) => assertUnchecked(t, page))
  await t.test('is checked, and kept for the tab alone', (t) => assertKept(t, page))
  await t.test('is sent no more when it is forgotten', (t) => assertForgotten(t, page))
})

async function assertUnchecked(t: Test, page: Page): Promise<void> {
  t.match(await authorize(page, ''), /Enter a token first/)
  t.match(await authorize(page, 'plant_…'), /Copy the whole token/)
  await page.context().setOffline(true)
  t.match(await authorize(page, token), /could not be checked.*no answer/)
  t.equal(await page.evaluate('sessionStorage.length'), 0)
  await page.context().setOffline(false)
}

async function assertKept(t: Test, page: Page): Promise<void> {
  for (const [title, scopes, said, kept] of verdicts) {
    const entered = scopes ? await new Tokens(store.tokens).create({ name: title, scopes }) : 'wrong'
    t.match(await authorize(page, ` ${entered} `), said, title)
    t.equal(await page.locator('header [data-authorize]').textContent(), kept ? 'Authorized' : 'Authorize')
    t.same(await page.evaluate('Object.values(sessionStorage)'), kept ? [entered] : [])
    t.equal(await page.evaluate('localStorage.length + document.cookie.length'), 0)
    // What goes without one shows once one is forgotten.
    if (!kept) continue
    await page.reload()
    await page.waitForSelector('[id$=-createPlant]')
    const [status] = await execute(page, 'listPlants')
    t.equal(status, scopes?.includes('plants:read') ? '200' : '403')
    // Closed, as the next round expects it: what is open stays so over a reload.
    await operation(page, 'listPlants').locator('.opblock-summary-control').click()
  }
}

async function assertForgotten(t: Test, page: Page): Promise<void> {
  await page.click('header [data-authorize]')
  const held = Promise.withResolvers<void>()
  await page.route(/plants\?limit=0$/, async (route) => {
    await held.promise
    await route.continue()
  })
  await page.fill('#token', token)
  await page.keyboard.press('Enter')
  await page.click('#forget')
  const late = page.waitForResponse(/plants\?limit=0$/)
  held.resolve()
  t.equal((await late).status(), 200, 'what is forgotten while it is checked stays so')
  t.match(await page.locator('#verdict').textContent(), 'forgotten')
  await page.click('#close')
  t.equal(await page.evaluate('sessionStorage.length'), 0)
  t.equal((await execute(page, 'createPlant'))[0], '401')
  const refusal = operation(page, 'createPlant').locator('.refusal')
  t.match(await refusal.textContent(), /plant-store token create.*Ask its operator/)
  await refusal.locator('button').click()
  t.ok(await page.locator('#authorize').isVisible())
}

test('services below two paths of one origin have a token each', async (t) => {
  const start = async (BASE_PATH: string) =>
    startApp(t, await sqlite.createDatabase(t), { env: { BASE_PATH } })
  const [one, two] = [await start('/a'), await start('/b')]
  const { page } = await openDocs(t, browser, `http://localhost:${one.port}/a/docs`)
  await page.route(/\/b\//, async (route) => {
    const url = new URL(route.request().url())
    url.port = String(two.port)
    await route.fulfill({ response: await route.fetch({ url: url.href }) })
  })
  t.match(await authorize(page, token), /^The token is valid/)
  for (const [path, state] of [
    ['b', 'Authorize'],
    ['a', 'Authorized'],
  ] as const) {
    await page.goto(`http://localhost:${one.port}/${path}/docs`)
    await page.waitForSelector('[id$=-createPlant]')
    t.equal(await page.locator('header [data-authorize]').textContent(), state, path)
  }
})

test('a JWT can be pasted, is checked like any token, and its faults are explained', async (t) => {
  const issuer = await startIssuer(t)
  const { sign, jwk } = await issuer.makeSigner('one')
  issuer.publish(jwk)
  const { port } = await startApp(t, await sqlite.createDatabase(t), { env: issuer.env })
  const { page } = await openDocs(t, browser, `http://localhost:${port}/docs`)
  const expired = await authorize(page, await sign({ exp: 1 }))
  t.match(expired, /^The service does not accept this JWT: it has expired.*401 Unauthorized/)
  t.notMatch(expired, /mistyped|revoked|token create/)
  t.match(await authorize(page, await sign({ scope: 'openid' })), /^The JWT is valid, but .*403 Forbidden/)
  t.match(await authorize(page, ` ${await sign()}\n`), /^The token is valid\. The answer was 200 OK/)
  t.equal((await execute(page, 'listPlants'))[0], '200')
})

test('close the browser', async (t) => {
  await browser.close()
  t.notOk(browser.isConnected())
})
