// Sign in on the docs page in a real browser, at a real issuer: oidc-provider.
import { once } from 'node:events'
import { createServer } from 'node:http'
// @ts-expect-error: it has no types of its own.
import { Provider } from 'oidc-provider'
import type { Page } from 'playwright-core'
import { type Test, test } from 'tap'
import { audience } from '../access/issuer.ts'
import { launchBrowser } from '../support/browser.ts'
import { execute, openDocs } from '../support/docs-page.ts'
import { sqlite } from '../support/engines.ts'
import { request, startApp } from '../support/service.ts'

const scope = 'plants:read plants:write'

/** Starts an issuer with one public client; `redirectUri`: where it may send readers. */
async function startProvider(t: Test) {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const url = `http://127.0.0.1:${port}`
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  /** What the issuer was asked. */
  const asked: URL[] = []
  function serve(redirectUri: string): void {
    const provider = new Provider(url, {
      clients: [
        {
          client_id: 'docs',
          redirect_uris: [redirectUri],
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
    const answer = provider.callback()
    server.on('request', (incoming, response) => {
      asked.push(new URL(String(incoming.url), url))
      answer(incoming, response)
    })
  }
  return { url, serve, asked }
}

async function start(t: Test, env: NodeJS.ProcessEnv) {
  const { port } = await startApp(t, await sqlite.createDatabase(t), { env })
  const browser = await launchBrowser()
  t.teardown(() => browser.close())
  return { browser, url: `http://localhost:${port}` }
}

/** Signs in on the pages of the issuer, which are in a tab of their own. */
async function signIn(page: Page): Promise<void> {
  const opened = page.context().waitForEvent('page')
  await page.locator('.steps [data-sign-in]').click()
  const issuer = await opened
  await issuer.fill('[name=login]', 'gardener')
  await issuer.fill('[name=password]', 'any')
  await issuer.locator('button[type=submit]').click()
  await issuer.locator('h1:has-text("Authorize")').waitFor()
  const closed = issuer.waitForEvent('close')
  await issuer.locator('button[type=submit]').click()
  await closed
}

test('a reader signs in at the issuer, and the token is used as one that was pasted', async (t) => {
  const provider = await startProvider(t)
  const env = { OIDC_ISSUER: provider.url, OIDC_AUDIENCE: audience, OIDC_DOCS_CLIENT_ID: 'docs' }
  const { browser, url } = await start(t, env)
  provider.serve(`${url}/oauth2-redirect.html`)
  const { page, faults } = await openDocs(t, browser, `${url}/docs`)
  await signIn(page)
  await page.waitForSelector('#verdict.good')
  t.match(await page.locator('#verdict').textContent(), /^The token is valid\. The answer was 200 OK/)
  const [kept] = (await page.evaluate('Object.values(sessionStorage)')) as string[]
  t.match(kept, /^eyJ[^.]+\.[^.]+\.[^.]+$/)
  t.equal(await page.evaluate('localStorage.length'), 0)
  t.equal(await page.locator('header [data-authorize]').textContent(), 'Authorized')
  await page.keyboard.press('Escape')
  t.equal((await execute(page, 'createPlant', '{"name":"a","tag":""}'))[0], '200')
  t.equal((await execute(page, 'listPlants'))[0], '200')
  t.same(faults, [])
  const authorization = provider.asked.find(({ pathname }) => pathname === '/auth') as URL
  t.match(Object.fromEntries(authorization.searchParams), {
    response_type: 'code',
    client_id: 'docs',
    scope,
    resource: audience,
    code_challenge_method: 'S256',
    code_challenge: /^[\w-]{43}$/,
  })
  // Another tab has nothing of it.
  const other = await openDocs(t, browser, `${url}/docs`)
  t.equal(await other.page.evaluate('sessionStorage.length'), 0)
})

test('an issuer that refuses or does not answer is named, and a token can still be pasted', async (t) => {
  const provider = await startProvider(t)
  const env = { OIDC_ISSUER: provider.url, OIDC_AUDIENCE: 'urn:plants', OIDC_DOCS_CLIENT_ID: 'docs' }
  const { browser, url } = await start(t, env)
  const { page } = await openDocs(t, browser, `${url}/docs`)
  // Nobody has said to it that it is an issuer, so far.
  await page.locator('.steps [data-sign-in]').click()
  t.match(await page.locator('#verdict.bad').textContent(), 'The issuer has not answered yet')
  provider.serve(`${url}/oauth2-redirect.html`)
  const discovered = page.waitForEvent('response', (one) => one.url().includes('openid-configuration'))
  await page.reload()
  await page.waitForSelector('[id$=-createPlant]')
  await (await discovered).finished()
  const opened = page.context().waitForEvent('page')
  await page.locator('.steps [data-sign-in]').click()
  const issuer = await opened
  await issuer.locator('a:has-text("Cancel")').click()
  await page.waitForSelector('#verdict.bad')
  t.match(await page.locator('#verdict').textContent(), /^Signing in failed: \[access_denied\]/)
})

test('without a client the page and the contract have nothing of it', async (t) => {
  const plain = await startApp(t, await sqlite.createDatabase(t))
  const env = { OIDC_ISSUER: 'https://issuer.test', OIDC_AUDIENCE: audience }
  const issued = await startApp(t, await sqlite.createDatabase(t), { env })
  const signing = await startApp(t, await sqlite.createDatabase(t), {
    env: { ...env, OIDC_DOCS_CLIENT_ID: 'docs' },
  })
  const read = async (url: string, path: string) => {
    const { status, text, headers } = await request(`${url}/${path}`, { headers: { authorization: '' } })
    return { status, text, policy: headers.get('content-security-policy') }
  }
  t.same(await read(issued.url, 'docs'), await read(plain.url, 'docs'))
  t.equal((await read(plain.url, 'oauth2-redirect.html')).status, 404)
  t.same(await read(issued.url, 'openapi.yaml'), await read(signing.url, 'openapi.yaml'))
  const page = await read(signing.url, 'docs')
  t.match(page.policy, "connect-src 'self' https://issuer.test;")
  t.match(page.text, 'data-client="docs"')
})
