// Serves the contract, Swagger UI, and the HTML pages, without a token.
import swagger from '@fastify/swagger'
import swaggerUi, { type FastifySwaggerUiOptions } from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { problemTypeNames } from '../../../schemas/problems.ts'
import { compress } from './compress.ts'
import { describeContract } from './contract.ts'
import * as pages from './pages.ts'

/** See `describeContract`. `signIn`: how readers sign in with the issuer. */
type DocsOptions = { basePath: string; openIdConnectUrl: string | undefined; signIn: SignIn }
type SignIn = FastifySwaggerUiOptions['initOAuth']

/** Defined in the browser, by swagger.js. */
declare const plantStorePlugin: (system: object) => object

/** Register it before the routes that the contract describes. */
export const docs = fp<DocsOptions>(async (app, { basePath, openIdConnectUrl, signIn }) => {
  await app.register(swagger, describeContract(basePath, openIdConnectUrl))
  const issuer = signIn && openIdConnectUrl ? new URL(openIdConnectUrl).origin : ''
  const headers = {
    'accept-ranges': 'none',
    'cache-control': 'no-cache',
    'content-security-policy':
      `default-src 'none'; base-uri 'none'; connect-src 'self' ${issuer}; form-action 'none'; ` +
      "frame-ancestors 'none'; img-src 'self' data:; script-src 'self'; style-src 'self'",
    'referrer-policy': 'no-referrer',
  }
  const serveSite = async (site: FastifyInstance) => {
    site.addHook('onSend', async (_request, reply) => {
      if (reply.problem === undefined) reply.headers(headers)
    })
    site.addHook('onRequest', async ({ raw, url, routeOptions }, reply) => {
      const page = `${basePath}docs`
      // Swagger UI would generate the YAML for each request, which takes milliseconds.
      if (routeOptions.url === `${page}/yaml`) return reply.redirect(`${basePath}openapi.yaml`)
      // Swagger UI resolves its files against the whole URL, query included.
      if (url.includes('?') && routeOptions.url?.replace(/\/$/, '') === page) return reply.redirect(page)
      // @fastify/static must ignore ranges, and preconditions other than If-None-Match.
      for (const name of ['if-match', 'if-modified-since', 'if-unmodified-since', 'range'])
        delete raw.headers[name]
    })
    await site.register(compress)
    await site.register(swaggerUi, describeUi(basePath, signIn))
    servePages(site, basePath)
  }
  await app.register(serveSite, { prefix: basePath.slice(0, -1) })
})

function describeUi(base: string, signIn: SignIn): FastifySwaggerUiOptions {
  const header = pages.fill(base, 'header.html')
  const file = (filename: string) => ({ filename, content: pages.fill(base, filename, { header }) })
  return {
    routePrefix: '/docs',
    indexPrefix: base,
    theme: {
      title: 'Try it – Plant Store',
      css: [file('theme.css'), file('swagger.css')],
      js: [file('swagger.js'), file('page.js')],
      favicon: [{ ...file('icon.svg'), rel: 'icon', type: 'image/svg+xml', sizes: 'any' }],
    },
    uiConfig: {
      layout: 'BaseLayout',
      deepLinking: true,
      defaultModelsExpandDepth: -1,
      tryItOutEnabled: true,
      // Serialized into a script of the page.
      plugins: [(system: object) => plantStorePlugin(system)],
    },
    ...(signIn && { initOAuth: signIn }),
    // Without a client id the page cannot use the issuer, and the CSP forbids fetching the issuer's metadata.
    transformSpecification: (contract) => {
      if (signIn) return contract
      delete contract.components?.securitySchemes?.oidc
      return { ...contract, security: [{ bearer: [] }] }
    },
  }
}

/** Serves the pages and the contract. Each is rendered on its first request. */
function servePages(app: FastifyInstance, base: string): void {
  const serve = (path: string, make: () => string | Promise<string>, type = 'text/html') => {
    let made: string | undefined
    app.get(path, async (_request, reply) => {
      made ??= await make()
      return reply.type(`${type}; charset=utf-8`).send(made)
    })
  }

  serve('/', () => pages.renderPage(base, 'Plant Store', pages.fill(base, 'home.html')))
  serve('/docs/guide', () => pages.renderMarkdown(base, pages.readOwn('docs/guide.md')))
  for (const name of problemTypeNames)
    serve(`/problems/${name}`, () => pages.renderMarkdown(base, pages.describeProblemType(base, name)))
  for (const name of pages.programs)
    serve(`/examples/${name}`, () => pages.readOwn(`examples/${name}`), 'text/plain')
  serve('/openapi.yaml', () => app.swagger({ yaml: true }), 'application/yaml')
  serve('/openapi.json', () => JSON.stringify(app.swagger(), null, 2), 'application/json')
}
