// GET /plants: a page of the log, or the whole log, as of the request or later.
import { Readable } from 'node:stream'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, preValidationHookHandler } from 'fastify'
import { Conditions, ListQuery } from '../../schemas/plant.ts'
import { listPlantsResponses } from '../../schemas/responses.ts'
import { type ListOptions, makeListPlants } from '../plants/list-plants.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { verdictGraceMs } from '../tokens/verifier.ts'

const schema = {
  operationId: 'listPlants',
  tags: ['plants'],
  summary: 'List plants',
  description:
    'Plants in the order in which they were added. The list includes every plant whose addition was acknowledged before ' +
    'this request arrived.',
  querystring: ListQuery,
  headers: Conditions,
  response: listPlantsResponses,
}

const config = { scope: 'plants:read' } as const

/** Matches an integer in decimal digits. `-0` stays a string, which the schema refuses. */
const integer = /^(?:-(?!0+$))?[0-9]+$/

/** Converts a limit in decimal digits to a number. */
const readLimit: preValidationHookHandler = (request, _reply, done) => {
  const query = request.query as Record<string, unknown>
  if (typeof query.limit === 'string' && integer.test(query.limit)) query.limit = Number(query.limit)
  done()
}

type Options = Omit<ListOptions, 'path'>

/** Sends a page as one buffer, and a long list as a stream. Fastify adds HEAD. */
export const listPlants: FastifyPluginAsyncTypebox<Options> = async (app, { log, meter }) => {
  const list = makeListPlants({ log, meter, path: `${app.prefix}/plants` })

  app.get('/plants', { schema, preValidation: readLimit, config }, async (request, reply) => {
    const { status, headers, coding, body } = await list(request)
    // The store may have responded so late that the token has been revoked.
    if (performance.now() > request.grant.untilMs + verdictGraceMs) {
      if (body instanceof Readable) body.destroy()
      throw new StoreUnavailable('unread', 'the verdict on the token has expired')
    }
    // The CORS plugin may have set Vary, which `headers` replaces.
    const vary = reply.getHeader('vary')
    reply.code(status).headers(headers)
    if (vary !== undefined) reply.header('vary', `${vary}, ${headers.vary}`)
    if (status === 200) reply.type('application/json; charset=utf-8')
    if (coding !== undefined && coding !== 'identity') reply.header('content-encoding', coding)
    if (body instanceof Readable) return sendStream(reply, body)
    // Without a stream, Fastify would send `content-length: 0` for HEAD.
    if (request.method === 'HEAD') return reply.send(Readable.from([]))
    // Each item was serialized by its schema when it was added; Fastify does not serialize bytes.
    return reply.send(body)
  })
}

/** Sends a long list. If that fails, the connection is reset, so that no client mistakes a part for the whole list. */
function sendStream(reply: FastifyReply, list: Readable): FastifyReply {
  const { request, raw, server } = reply
  const reset = () => void request.raw.socket.resetAndDestroy()
  list.once('error', (err) => {
    request.log.error({ err, requestId: request.id }, 'a list failed midway; its connection was reset')
    raw.statusCode = 500
    reset()
  })
  // The client has stopped reading.
  raw.once('timeout', reset)
  server.connections.pending.set(request.raw.socket, raw)
  return reply.send(list)
}
