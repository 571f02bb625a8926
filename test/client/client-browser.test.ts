// The client in a real browser, on a page of another origin than the service.
import { createServer } from 'node:http'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { type Test, test } from 'tap'
import { launchBrowser } from '../site/browser.ts'
import { startApp, token } from '../support/service.ts'
import { openFailing } from '../support/stores.ts'
import { listen } from '../support/wire.ts'
import { alder } from './client.ts'

const index = '../../client/src/index.ts'

/** Bundles a program for browsers. */
async function bundle(contents: string): Promise<string> {
  const stdin = { contents, resolveDir: import.meta.dirname }
  const settings = { bundle: true, minify: true, format: 'esm', write: false, logLevel: 'error' } as const
  return String((await build({ stdin, ...settings })).outputFiles[0]?.text)
}

/** Starts a site with a page that only loads the client. */
async function startSite(t: Test): Promise<string> {
  const script = await bundle(`import * as client from '${index}'; globalThis.client = client`)
  const site = createServer(({ url }, response) => {
    if (url === '/client.js') response.setHeader('content-type', 'text/javascript').end(script)
    else response.setHeader('content-type', 'text/html').end('<script src="client.js"></script>')
  })
  return `http://localhost:${await listen(t, site)}`
}

const inBrowser = `(async ({ baseUrl, token }) => {
  const { PlantStore } = globalThis.client
  const store = new PlantStore({ baseUrl, token, fetch: globalThis.fetch })
  const added = await store.add({ name: 'Black alder', tag: 'Alnus glutinosa' })
  await store.add({ name: 'Alder 🌿', tag: '' })
  const page = await store.list({ limit: 1 })
  const names = []
  for await (const { name } of store.all({ pageSize: 1 })) names.push(name)
  const refused = await store.list({ limit: -1 }).catch((error) => error.kind)
  const stopped = await store.list({ signal: AbortSignal.abort('enough') }).catch((reason) => reason)
  return { added, hasNext: page.next !== undefined, hasEtag: page.etag !== undefined, names, refused, stopped }
})`

test('adds, lists, pages and retries on a page of another origin', async (t) => {
  const site = await startSite(t)
  const { store, faults } = await openFailing(t)
  const { url } = await startApp(t, '', { store, env: { CORS_ORIGIN: site } })
  const page = await (await launchBrowser(t)).newPage()
  await page.goto(site)
  await page.waitForFunction('globalThis.client')
  faults.push('unknown')
  const evaluate = (script: string) => page.evaluate(`${script}(${JSON.stringify({ baseUrl: url, token })})`)
  t.same(await evaluate(inBrowser), {
    added: alder,
    hasNext: true,
    hasEtag: true,
    names: [alder.name, 'Alder 🌿'],
    refused: 'invalid-request',
    stopped: 'enough',
  })
  t.same(faults, [], 'the first addition was repeated')
})

test('adds at most 3 KB to a bundle, and nothing if it is not used', async (t) => {
  const bytes = gzipSync(await bundle(`export * from '${index}'`), { level: 9 }).length
  t.ok(bytes > 0 && bytes <= 3 * 1024, `${bytes} bytes`)
  t.equal(await bundle(`import '${index}'`), '')
})
