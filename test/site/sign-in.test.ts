// Signing in on the page /docs in a real browser, at a real issuer: oidc-provider.
import { createServer } from 'node:http'
// @ts-expect-error: the package has no types.
import { Provider } from 'oidc-provider'
import type { Browser, Page } from 'playwright-core'
import tap, { before, type Test, test } from 'tap'
import { request, startApp, token } from '../support/service.ts'
import { listen } from '../support/wire.ts'
import { launchBrowser } from './browser.ts'
import { authorize, execute, openDocs, operation } from './docs-page.ts'

const audience = 'https://plants.test/'
const scope = 'plants:read plants:write'

/**
 * Starts an issuer with one public client. The client is native, so that its redirect URI is valid with any port
 * (RFC 8252, section 7.3), because the port of the service is not known yet.
 */
async function startProvider(t: Test) {
  const server = createServer()
  const url = `http://127.0.0.1:${await listen(t, server)}`
  const provider = new Provider(url, {
    clients: [
      {
        client_id: 'docs',
        redirect_uris: ['http://localhost/docs/static/oauth2-redirect.html'],
        token_endpoint_auth_method: 'none',
        application_type: 'native',
      },
    ],
    clientBasedCORS: () => true,
    scopes: scope.split(' '),
    features: {
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({ scope, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } }),
      },
    },
  })
  /** URLs of all requests. */
  const asked: URL[] = []
  const answer = provider.callback()
  server.on('request', async (incoming, response) => {
    asked.push(new URL(String(incoming.url), url))
    if (incoming.headers.origin) await mayAnswerPages
    answer(incoming, response)
  })
  return { url, asked }
}

/** Delays the responses of the issuer to pages, which are the only clients that send an Origin. */
let mayAnswerPages: Promise<void> | undefined

let browser: Browser
let provider: Awaited<ReturnType<typeof startProvider>>
let url: string
before(async () => {
  ;[browser, provider] = await Promise.all([launchBrowser(tap), startProvider(tap)])
  const env = { OIDC_ISSUER: provider.url, OIDC_AUDIENCE: audience, OIDC_DOCS_CLIENT_ID: 'docs' }
  url = `http://localhost:${(await startApp(tap, undefined, { env })).port}`
})

const signInButton = '.auth-container:has-text("authorization_code") .btn.authorize'

/** Opens the dialog and starts to sign in. Resolves to the tab of the issuer. */
async function beginSignIn(page: Page): Promise<Page> {
  await page.click('.scheme-container .authorize')
  const opened = page.context().waitForEvent('page')
  await page.locator(signInButton).click()
  return await opened
}

/** Signs in on the pages of the issuer. */
async function signIn(page: Page): Promise<void> {
  const issuer = await beginSignIn(page)
  await issuer.fill('[name=login]', 'gardener')
  await issuer.fill('[name=password]', 'any')
  await issuer.locator('button[type=submit]').click()
  await issuer.locator('h1:has-text("Authorize")').waitFor()
  const closed = issuer.waitForEvent('close')
  await issuer.locator('button[type=submit]').click()
  await closed
}

test('a reader signs in at the issuer, and the token is used like a pasted one', async (t) => {
  const { page, faults } = await openDocs(t, browser, `${url}/docs`)
  await signIn(page)
  await page.locator('.scheme-container .authorize.locked').waitFor()
  const [kept] = (await page.evaluate('Object.values(sessionStorage)')) as string[]
  t.match(kept, /^eyJ[^.]+\.[^.]+\.[^.]+$/)
  t.equal(await page.evaluate('localStorage.length'), 0)
  await page.locator('.modal-ux .btn-done').first().click()
  t.equal((await execute(page, 'createPlant', '{"name":"a","tag":""}'))[0], '200')
  t.equal((await execute(page, 'listPlants'))[0], '200')
  t.same(faults, [])
  await page.click('.scheme-container .authorize')
  t.equal(await page.locator('.auth-container:has-text("Flow:")').count(), 1)
  await page.locator('.auth-container:has-text("Flow:") .btn:has-text("Logout")').click()
  await page.locator('.modal-ux .btn-done').first().click()
  await operation(page, 'listPlants').locator('.execute').click()
  t.match(await page.locator('.explanation').textContent(), /token is required/)
  const authorization = provider.asked.find(({ pathname }) => pathname === '/auth') as URL
  t.match(Object.fromEntries(authorization.searchParams), {
    response_type: 'code',
    client_id: 'docs',
    resource: audience,
    code_challenge_method: 'S256',
    code_challenge: /^[\w-]{43}$/,
  })
})

test('a dialog that is already open offers to sign in as soon as the issuer has responded', async (t) => {
  const answering = Promise.withResolvers<void>()
  mayAnswerPages = answering.promise
  const { page, faults } = await openDocs(t, browser, `${url}/docs`)
  await page.click('.scheme-container .authorize')
  await page.locator('.modal-ux input').first().fill('a token')
  answering.resolve()
  await page.locator(signInButton).waitFor()
  t.equal(await page.locator('.modal-ux input').first().inputValue(), 'a token')
  t.same(faults, [])
})

test('the error of an issuer that refuses is shown, and a token can still be pasted', async (t) => {
  const { page } = await openDocs(t, browser, `${url}/docs`)
  const issuer = await beginSignIn(page)
  await issuer.locator('a:has-text("Cancel")').click()
  t.match(await page.locator('.modal-ux .errors').first().textContent(), /access_denied/)
  await page.locator('.modal-ux .btn-done').first().click()
  await authorize(page, token)
  t.equal((await execute(page, 'listPlants'))[0], '200')
})

test('the page names the issuer only with OIDC_DOCS_CLIENT_ID', async (t) => {
  const env = { OIDC_ISSUER: 'https://issuer.test', OIDC_AUDIENCE: audience }
  const issued = await startApp(t, undefined, { env })
  const signing = await startApp(t, undefined, { env: { ...env, OIDC_DOCS_CLIENT_ID: 'docs' } })
  const read = async (url: string, path: string) =>
    request(`${url}/${path}`, { headers: { authorization: '' } })
  t.notMatch((await read(issued.url, 'docs/json')).text, /issuer\.test|oidc/)
  t.notMatch((await read(issued.url, 'docs')).headers.get('content-security-policy'), 'issuer.test')
  t.match((await read(signing.url, 'docs/json')).text, 'issuer.test')
  t.match((await read(signing.url, 'docs')).headers.get('content-security-policy'), ' https://issuer.test;')
  t.equal((await read(issued.url, 'openapi.yaml')).text, (await read(signing.url, 'openapi.yaml')).text)
})
