// Everything that is open without a token: the page, the guide, what each problem means, and the contract. What they are
// made with is loaded when somebody first asks for them: it would be half of a start, and most processes never need it.
import type { FastifyInstance } from 'fastify'
import { type ProblemTypeName, problemTypes } from '../../schemas/problem-types.ts'
import type { Operations } from '../http/document.ts'
import { type Content, once, serveDocument } from '../http/documents.ts'
import { serveAssets } from './assets.ts'
import { pageOptions, type Site } from './frame.ts'

/** Serves the contract and its pages below `basePath`, which ends with a slash. */
export function serveDocs(app: FastifyInstance, basePath: string, operations: Operations): void {
  const assets = serveAssets(app, basePath)
  const servePage = (path: string, render: (site: Site) => Promise<Content>) =>
    serveDocument(app, basePath + path, pageOptions, async () => render({ basePath, assets: await assets() }))

  for (const path of new Set(['/', basePath, basePath.slice(0, -1) || '/', `${basePath}docs/`]))
    app.route({
      method: ['GET', 'HEAD'],
      url: path,
      handler: (_request, reply) => reply.redirect(`${basePath}docs`),
    })
  servePage('docs', async (site) => (await import('./home-page.ts')).renderHomePage(site))
  servePage('docs/guide', async (site) => {
    const { readGuide, renderGuide } = await import('./guide.ts')
    return renderGuide(site, await readGuide())
  })
  for (const name of Object.keys(problemTypes) as ProblemTypeName[])
    servePage(`problems/${name}`, async (site) =>
      (await import('./problem-pages.ts')).renderProblemPage(site, name),
    )
  serveContract(app, basePath, operations)
}

function serveContract(app: FastifyInstance, basePath: string, operations: Operations): void {
  const load = once(async () => {
    const { makeContract, ...forms } = await import('../http/document.ts')
    return { contract: await makeContract(basePath, operations), ...forms }
  })
  const serve = (name: string, type: string, print: (loaded: Awaited<ReturnType<typeof load>>) => string) =>
    serveDocument(app, basePath + name, type, async () => print(await load()))
  const toJson = (document: object) => JSON.stringify(document, null, 2)
  serve('openapi.yaml', 'application/yaml', ({ contract, toYaml }) => toYaml(contract))
  serve('openapi.json', 'application/json', ({ contract }) => toJson(contract))
  serve('openapi-3.0.json', 'application/json', ({ contract, toOpenApi30 }) => toJson(toOpenApi30(contract)))
}
