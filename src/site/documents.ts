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
  const load = once(async () => new Document(await make(), options))
  app.route({
    method: ['GET', 'HEAD'],
    url: path,
    handler: async (request, reply) => (await load()).send(request, reply),
  })
}

const negotiate = makeNegotiator(documentCodings)

/** Compressors with the best ratio that does not keep the first client waiting. */
const compress: Record<Coding, (bytes: Buffer) => Promise<Buffer>> = {
  br: (bytes) =>
    promisify(brotliCompress)(bytes, {
      params: { [zlib.BROTLI_PARAM_QUALITY]: 9, [zlib.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    }),
  zstd: (bytes) => promisify(zstdCompress)(bytes, { params: { [zlib.ZSTD_c_compressionLevel]: 12 } }),
  gzip: (bytes) => promisify(gzip)(bytes, { level: 9 }),
  identity: async (bytes) => bytes,
}

export class Document {
  readonly #options: DocumentOptions
  readonly #bytes: Buffer
  readonly #hash: string
  readonly #forms = new Map<Coding, () => Promise<Buffer>>()

  constructor(text: string, options: DocumentOptions) {
    this.#options = options
    this.#bytes = Buffer.from(text)
    this.#hash = createHash('sha256').update(this.#bytes).digest('base64url').slice(0, 16)
  }

  /** Sends the document in the coding that the client prefers, or 304. Throws when If-Match is false. */
  async send(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const [coding = 'identity'] = negotiate(request.headers['accept-encoding'])
    // A strong entity tag, which differs between codings (RFC 9110, section 8.8.3.3).
    const etag = coding === 'identity' ? `"${this.#hash}"` : `"${this.#hash}-${coding}"`
    const isCurrent = findCurrent(request, () => [{ etag }], 'document') !== undefined
    const bytes = isCurrent ? undefined : await this.#encode(coding)
    const { type, headers } = this.#options
    reply.headers({ 'cache-control': 'no-cache', ...headers, etag, vary: varyByCoding(reply) })
    if (bytes === undefined) return reply.code(304).send()
    if (coding !== 'identity') reply.header('content-encoding', coding)
    return reply.type(type).send(bytes)
  }

  #encode(coding: Coding): Promise<Buffer> {
    const encode = this.#forms.get(coding) ?? once(() => compress[coding](this.#bytes))
    this.#forms.set(coding, encode)
    return encode()
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
