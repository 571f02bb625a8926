// The list operation: a page of the log, or all of it, no older than the request.
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { Conditions, ListQuery } from '../../../schemas/plant.ts'
import type { GuardedRoute } from '../../http/access/authentication.ts'
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
  route: GuardedRoute
  log: PlantLog
  storeId: string
  path: string
  sender: ListSender
}

export const listSchema = {
  operationId: 'listPlants',
  summary: 'List plants',
  description:
    'Plants in the order in which they were added. The list contains every plant whose addition was answered before ' +
    'the request arrived.',
  querystring: ListQuery,
  headers: Conditions,
}

const negotiate = makeNegotiator(listCodings)

export const listRoutes: FastifyPluginAsync<ListOptions> = async (app, options) => {
  const { route, log, storeId, path, sender } = options
  const cursors = makeCursors(storeId)
  const represent = makeRepresentations({ storeId, path, cursors })
  const head = new SharedHead(log, { ...replies, answer })
  app.route({
    ...route,
    handler(_request: FastifyRequest, reply: FastifyReply): void {
      head.wait(reply)
    },
  })

  function answer(head: Head, reply: FastifyReply): void {
    const { request } = reply
    const query = request.query as ListQuery
    const after = query.after === undefined ? 0 : cursors.decode(query.after, head.epochs)
    if (after === undefined || after > head.position) throw badCursor()
    const listed = represent(head, after, query)
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
