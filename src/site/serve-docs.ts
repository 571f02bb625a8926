// Serves everything that needs no token: the docs page, the guide, the problem pages and the contract. Their modules
// are loaded on demand: they would be half of a start, and most processes never need them.
import type { FastifyInstance } from 'fastify'
import { type ProblemTypeName, problemTypes } from '../../schemas/problems.ts'
import type { Operation } from '../http/operation.ts'
import type { Issuer } from '../tokens/oidc/issuer.ts'
import { serveAssets } from './assets.ts'
import { once, serveDocument, servePath } from './documents.ts'
import { pageOptions, type Site } from './frame.ts'

export type DocsOptions = { basePath: string; operations: readonly Operation[]; issuer: Issuer | undefined }

/** Serves the contract and its pages below `basePath`, which ends with a slash. */
export function serveDocs(app: FastifyInstance, { basePath, operations, issuer }: DocsOptions): void {
  const assets = serveAssets(app, basePath)
  const servePage = (path: string, render: (site: Site) => Promise<string>) =>
    serveDocument(app, basePath + path, pageOptions, async () => render({ basePath, assets: await assets() }))

  for (const path of new Set(['/', basePath, basePath.slice(0, -1) || '/', `${basePath}docs/`]))
    servePath(app, path, async (_request, reply) => reply.redirect(`${basePath}docs`))
  servePage('docs', async (site) => (await import('./home-page.ts')).renderHomePage(site))
  const loadPages = () => import('./reading-pages.ts')
  servePage('docs/guide', async (site) => (await loadPages()).renderGuidePage(site))
  for (const name of Object.keys(problemTypes) as ProblemTypeName[])
    servePage(`problems/${name}`, async (site) => (await loadPages()).renderProblemPage(site, name))

  const load = once(async () => {
    const { makeContract, ...forms } = await import('../http/openapi-document.ts')
    return { contract: makeContract(basePath, operations, issuer), ...forms }
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
