// The list operation: a page of the log, or all of it, no older than the request.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { ref } from '../../../schemas/component.ts'
import { ListHeaders, ListQuery, PlantList } from '../../../schemas/plant.ts'
import { listCodings, makeNegotiator } from '../../http/codings.ts'
import { findCurrent } from '../../http/conditions.ts'
import { invalid, type ProblemError } from '../../http/problem-error.ts'
import type { Head, PlantLog } from '../../store/store.ts'
import { replies } from '../delivery.ts'
import { makeCursors } from './cursor.ts'
import type { ListSender } from './list-sender.ts'
import { makeRepresentations } from './representations.ts'
import { SharedHead } from './shared-head.ts'

/** `path`: the base path as clients see it, which ends with a slash, for the `Link` to the next page. */
export type ListOptions = {
  access: onRequestHookHandler
  log: PlantLog
  storeId: string
  path: string
  sender: ListSender
}

export const listSchema = {
  tags: ['plants'],
  operationId: 'listPlants',
  summary: 'List plants',
  description:
    'Plants in the order in which they were added. The list contains every plant whose addition was answered before ' +
    'the request arrived.',
  headers: ListHeaders,
  querystring: ListQuery,
  response: { 200: ref(PlantList) },
}

const negotiate = makeNegotiator(listCodings)

export const listRoutes: FastifyPluginAsyncTypebox<ListOptions> = async (app, options) => {
  const { access, log, storeId, path, sender } = options
  const cursors = makeCursors(storeId)
  const represent = makeRepresentations({ storeId, path, cursors })
  const head = new SharedHead(log, { ...replies, answer })
  const route = {
    onRequest: access,
    schema: listSchema,
    handler(_request: FastifyRequest, reply: FastifyReply): void {
      head.wait(reply)
    },
  }
  app.get('/plants', route)
  app.head('/plants', route)

  function answer(head: Head, reply: FastifyReply): void {
    const { request } = reply
    const { limit = Number.POSITIVE_INFINITY, after: cursor } = request.query as ListQuery
    const after = cursor === undefined ? 0 : cursors.decode(cursor, head.epochs)
    if (after === undefined || after > head.position) throw badCursor()
    const listed = represent(head, after, limit)
    const codings = negotiate(request.headers['accept-encoding'])
    const forms = () => sender.formsOf({ listed, codings })
    const current = findCurrent(request, forms, 'list')
    if (current) sender.sendHead(reply.code(304), current.current)
    else if (request.method === 'HEAD') sender.sendHead(reply, forms()[0].headers)
    else sender.send(reply, { listed, codings })
  }
}

function badCursor(): ProblemError {
  const detail = 'must be taken from the Link header of a list of this store'
  return invalid([{ code: 'format', detail, parameter: 'after' }])
}
