// Serves documents that only a release changes: pages, assets and the contract. They need no token.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { varyByCoding } from '../http/codings.ts'
import { findCurrent } from '../http/conditions.ts'
import { Coded, chooseCoding } from './coded.ts'

export type Content = string | Buffer

/** `type`: media type; `headers`: further headers. */
export type DocumentOptions = { type: string; headers?: Record<string, string> }

/**
 * Serves a document at a path, to GET and HEAD. `make` is called at the first request, and again only after a failure.
 * The document is compressed as the client accepts it; a client that has it gets 304.
 */
export function serveDocument(
  app: FastifyInstance,
  path: string,
  options: string | DocumentOptions,
  make: () => Content | Promise<Content>,
): void {
  const described = typeof options === 'string' ? { type: options } : options
  const load = once(async () => new Coded(await make()))
  app.route({
    method: ['GET', 'HEAD'],
    url: path,
    handler: async (request, reply) => sendCoded(request, reply, await load(), described),
  })
}

/** Sends a document in the coding that the client accepts, or 304. Throws when If-Match is false. */
export async function sendCoded(
  request: FastifyRequest,
  reply: FastifyReply,
  coded: Coded,
  { type, headers: more }: DocumentOptions,
): Promise<FastifyReply> {
  const coding = chooseCoding(request.headers['accept-encoding'])
  const etag = coded.etag(coding)
  const isCurrent = findCurrent(request, () => [{ etag }], 'document') !== undefined
  const bytes = isCurrent ? undefined : await coded.form(coding)
  reply.headers({ 'cache-control': 'no-cache', ...more, etag, vary: varyByCoding(reply) })
  if (bytes === undefined) return reply.code(304).send()
  if (coding !== 'identity') reply.header('content-encoding', coding)
  return reply.type(type).send(bytes)
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
