// Serves everything that needs no token: the docs page, the guide, the problem pages and the contract. Their modules
// are loaded on demand: they would be half of a start, and most processes never need them.
import type { FastifyInstance } from 'fastify'
import { type ProblemTypeName, problemTypes } from '../../schemas/problems.ts'
import type { Operation } from '../http/operation.ts'
import type { Issuer } from '../tokens/issuer.ts'
import { serveAssets } from './assets.ts'
import { once, serveDocument, servePath } from './documents.ts'
import { pageOptions, readingPages, type Site } from './frame.ts'

/** Complete programs, to which the guide leads. */
const examples = ['add-and-list.sh', 'go.go', 'javascript.mjs', 'python.py']

export type DocsOptions = { basePath: string; operations: readonly Operation[]; issuer: Issuer | undefined }

/** Serves the contract and its pages below `basePath`, which ends with a slash. */
export function serveDocs(app: FastifyInstance, { basePath, operations, issuer }: DocsOptions): void {
  const signsIn = issuer?.oidcDocsClientId === undefined ? undefined : issuer
  const assets = serveAssets(app, basePath, signsIn !== undefined)
  const servePage = (path: string, render: (site: Site) => Promise<string>, options = pageOptions()) =>
    serveDocument(app, basePath + path, options, async () => render({ basePath, assets: await assets() }))

  for (const path of new Set(['/', basePath, basePath.slice(0, -1) || '/', `${basePath}docs/`]))
    servePath(app, path, async (_request, reply) => reply.redirect(`${basePath}docs`))
  const loadHome = () => import('./home-page.ts')
  const render = async (site: Site) => (await loadHome()).renderHomePage(site, signsIn)
  servePage('docs', render, pageOptions(signsIn?.oidcIssuer))
  if (signsIn) servePage('oauth2-redirect.html', async (site) => (await loadHome()).renderRedirectPage(site))
  const loadPages = () => import('./reading-pages.ts')
  for (const name of readingPages)
    servePage(`docs/${name}`, async (site) => (await loadPages()).renderReadingPage(site, name))
  for (const path of examples)
    serveDocument(app, `${basePath}docs/examples/${path}`, { type: 'text/plain; charset=utf-8' }, async () =>
      (await loadPages()).readOwn(`examples/${path}`),
    )
  for (const name of Object.keys(problemTypes) as ProblemTypeName[])
    servePage(`problems/${name}`, async (site) => (await loadPages()).renderProblemPage(site, name))

  const load = once(async () => {
    const { makeContract, ...forms } = await import('../http/openapi-document.ts')
    return { contract: await makeContract(basePath, operations, issuer), ...forms }
  })
  const serve = (name: string, type: string, print: (loaded: Awaited<ReturnType<typeof load>>) => string) =>
    serveDocument(app, basePath + name, { type }, async () => print(await load()))
  const toJson = (document: object) => JSON.stringify(document, null, 2)
  serve('openapi.yaml', 'application/yaml', ({ contract, toYaml }) => toYaml(contract))
  serve('openapi.json', 'application/json', ({ contract }) => toJson(contract))
  serve('openapi-3.0.json', 'application/json', ({ contract, toOpenApi30 }) => toJson(toOpenApi30(contract)))
}

type Resource = { path: string; metadata: object }

/** Serves the protected resource metadata for clients of an issuer (RFC 9728), outside the base path. */
export function serveResource(app: FastifyInstance, { path, metadata }: Resource): void {
  // The router matches decoded paths, and takes a single colon for a parameter.
  const route = decodeURI(path).replaceAll(':', '::')
  serveDocument(app, route, { type: 'application/json' }, () => JSON.stringify(metadata))
}
