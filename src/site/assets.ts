// The files that the pages load. Their URLs contain a hash of all of them, so that browsers may cache them for ever.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import { problems } from '../../schemas/problems.ts'
import { ProblemError } from '../http/problem-error.ts'
import { type Handler, makeDocument, once, servePath } from './documents.ts'

const own = new URL('./static/', import.meta.url)
/** Swagger UI's files are taken from this package: Swagger UI's own package reports each installation. */
const swagger = new URL('./static/', import.meta.resolve('@fastify/swagger-ui'))

const script = 'text/javascript; charset=utf-8'
const style = 'text/css; charset=utf-8'

const files: Record<string, { type: string; read: () => Promise<string> }> = {
  'theme.css': { type: style, read: () => read(own, 'theme.css') },
  'home.css': { type: style, read: readHomeStyle },
  'page.js': { type: script, read: () => read(own, 'page.js') },
  'authorize.js': { type: script, read: () => read(own, 'authorize.js') },
  'swagger-plugin.js': { type: script, read: () => read(own, 'swagger-plugin.js') },
  'swagger-ui.js': { type: script, read: () => read(swagger, 'swagger-ui-bundle.js') },
  'copy.js': { type: script, read: () => read(own, 'copy.js') },
  'icon.svg': { type: 'image/svg+xml', read: () => read(own, 'icon.svg') },
}

/** Loaded by the page where readers can sign in at the issuer. */
const signInFiles: typeof files = {
  'sign-in.js': { type: script, read: () => read(own, 'sign-in.js') },
  'oauth2-redirect.js': { type: script, read: () => read(swagger, 'oauth2-redirect.js') },
}

/** Reads a file, and removes the link to its source map, which is not served. */
async function read(folder: URL, name: string): Promise<string> {
  const text = await readFile(new URL(name, folder), 'utf8')
  return text.replace(/\n(?:\/\/# sourceMappingURL=\S*|\/\*# sourceMappingURL=\S* ?\*\/)\s*$/, '\n')
}

/** Puts Swagger UI's style into a layer, so that ours always wins. */
async function readHomeStyle(): Promise<string> {
  const layer = `@layer swagger {\n${await read(swagger, 'swagger-ui.css')}}\n`
  return layer + (await read(own, 'home.css')) + (await read(own, 'operations.css'))
}

const headers = { 'cache-control': 'public, max-age=31536000, immutable' }

async function loadAssets(hasSignIn: boolean) {
  const hash = createHash('sha256')
  const assets = new Map<string, Handler>()
  for (const [name, { type, read }] of Object.entries({ ...files, ...(hasSignIn && signInFiles) })) {
    const text = await read()
    hash.update(text)
    assets.set(name, makeDocument(text, { type, headers }))
  }
  return { version: hash.digest('hex').slice(0, 12), assets }
}

/** Serves the assets, which are read on demand; returns a function that resolves to the URL of their folder. */
export function serveAssets(
  app: FastifyInstance,
  basePath: string,
  hasSignIn: boolean,
): () => Promise<string> {
  const load = once(() => loadAssets(hasSignIn))
  servePath(app, `${basePath}docs/static/:version/:name`, async (request, reply) => {
    const { version, assets } = await load()
    const asked = request.params as { version: string; name: string }
    const asset = assets.get(asked.name)
    if (asset === undefined || asked.version !== version) throw new ProblemError(problems.nothingHere)
    return asset(request, reply)
  })
  return async () => `${basePath}docs/static/${(await load()).version}/`
}
