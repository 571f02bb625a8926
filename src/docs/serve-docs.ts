// Everything that is open without a token: the page, the guide, what each problem means, and the contract.
import type { FastifyInstance } from 'fastify'
import { toOpenApi30, toYaml } from '../http/document.ts'
import { type Content, serveDocument } from '../http/documents.ts'
import { serveAssets } from './assets.ts'
import { pageOptions, type Site } from './frame.ts'
import { readGuide, renderGuide } from './guide.ts'
import { renderHomePage } from './home-page.ts'
import { problemNames, renderProblemPage } from './problem-pages.ts'

/** Serves the contract and its pages below `basePath`, which ends with a slash. */
export function serveDocs(app: FastifyInstance, basePath: string): void {
  const assets = serveAssets(app, basePath)
  const servePage = (path: string, render: (site: Site) => Content | Promise<Content>) =>
    serveDocument(app, basePath + path, pageOptions, async () => render({ basePath, assets: await assets() }))

  for (const path of new Set(['/', basePath, basePath.slice(0, -1) || '/', `${basePath}docs/`]))
    app.route({
      method: ['GET', 'HEAD'],
      url: path,
      schema: { hide: true },
      handler: (_request, reply) => reply.redirect(`${basePath}docs`),
    })
  servePage('docs', renderHomePage)
  servePage('docs/guide', async (site) => renderGuide(site, await readGuide()))
  for (const name of problemNames) servePage(`problems/${name}`, (site) => renderProblemPage(site, name))
  const print = (document: object) => JSON.stringify(document, null, 2)
  serveDocument(app, `${basePath}openapi.yaml`, 'application/yaml', () => toYaml(app.swagger()))
  serveDocument(app, `${basePath}openapi.json`, 'application/json', () => print(app.swagger()))
  serveDocument(app, `${basePath}openapi-3.0.json`, 'application/json', () =>
    print(toOpenApi30(app.swagger())),
  )
}
