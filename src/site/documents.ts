// Serves documents that only a release changes: pages, assets and the contract. They need no token. Each is compressed
// once per content coding that clients accept (RFC 9110, section 12.5.3), on demand.
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, gzip, constants as zlib, zstdCompress } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Coding, documentCodings, makeNegotiator, varyByCoding } from '../http/codings.ts'
import { findCurrent } from '../http/conditions.ts'

/** `type`: media type; `headers`: further headers. */
export type DocumentOptions = { type: string; headers?: Record<string, string> }

/** Serves a document at a path, to GET and HEAD. `make` is called at the first request, and again only after a failure. */
export function serveDocument(
  app: FastifyInstance,
  path: string,
  options: DocumentOptions,
  make: () => string | Promise<string>,
): void {
  const load = once(async () => makeDocument(await make(), options))
  servePath(app, path, async (request, reply) => (await load())(request, reply))
}

export type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

/** Serves a path to GET and HEAD. */
export function servePath(app: FastifyInstance, url: string, handler: Handler): void {
  app.route({ method: ['GET', 'HEAD'], url, handler })
}

const negotiate = makeNegotiator(documentCodings)

/** Makes a handler that sends a text in the coding that the client prefers, or 304. It throws when If-Match is false. */
export function makeDocument(text: string, { type, headers }: DocumentOptions): Handler {
  const plain = Buffer.from(text)
  const hash = createHash('sha256').update(plain).digest('base64url').slice(0, 16)
  const forms = compressOnce(plain)
  return async (request, reply) => {
    const [coding = 'identity'] = negotiate(request.headers['accept-encoding'])
    // A strong entity tag, which differs between codings (RFC 9110, section 8.8.3.3).
    const etag = coding === 'identity' ? `"${hash}"` : `"${hash}-${coding}"`
    const isCurrent = findCurrent(request, () => [{ etag }], 'document') !== undefined
    const bytes = isCurrent ? undefined : await forms[coding]()
    reply.headers({ 'cache-control': 'no-cache', ...headers, etag, vary: varyByCoding(reply) })
    if (bytes === undefined) return reply.code(304).send()
    if (coding !== 'identity') reply.header('content-encoding', coding)
    return reply.type(type).send(bytes)
  }
}

/** The forms of a document, with the best ratio that does not keep the first client waiting. */
function compressOnce(plain: Buffer): Record<Coding, () => Promise<Buffer>> {
  const brotliParams = { [zlib.BROTLI_PARAM_QUALITY]: 7, [zlib.BROTLI_PARAM_SIZE_HINT]: plain.length }
  const zstdParams = { [zlib.ZSTD_c_compressionLevel]: 12 }
  return {
    br: once(() => promisify(brotliCompress)(plain, { params: brotliParams })),
    zstd: once(() => promisify(zstdCompress)(plain, { params: zstdParams })),
    gzip: once(() => promisify(gzip)(plain, { level: 9 })),
    identity: async () => plain,
  }
}

/** Memoizes `make`. A failure is not kept: the next call tries again. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make().catch((error) => {
      made = undefined
      throw error
    })
    return made
  }
}
