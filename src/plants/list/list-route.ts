// The list operation: a page of the log, or all of it, no older than the request. Its data flows down through three parts
// and up again, and none knows the one above:
//   answer/    when the head of the log is known, which list that is: the condition, its representation with entity tag
//              and Link, and how it is sent
//   cache/     the bytes of pages by name, plain and compressed; who reads and compresses a page, and when
//   range.ts   the bytes of a range of the log: parts, pages joined from them, streams of long lists
// A request waits for the head (shared-head.ts), gets its representation (representations.ts), and is sent what `Pages`
// has or makes of its range (list-sender.ts). What is shared fairly between tokens is made here, and handed down.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { ref } from '../../../schemas/component.ts'
import { ListHeaders, ListQuery, PlantList } from '../../../schemas/plant.ts'
import { listCodings, makeNegotiator } from '../../http/codings.ts'
import { findCurrent } from '../../http/conditions.ts'
import { invalid, type ProblemError } from '../../http/problem-error.ts'
import { codecJobs } from '../../limits.ts'
import { FairPool } from '../../runtime/fair-pool.ts'
import type { Head, PlantLog } from '../../store/store.ts'
import { ListSender, type ListSenderOptions } from './answer/list-sender.ts'
import { type Form, makeCursors, makeRepresentations } from './answer/representations.ts'
import { SharedHead } from './answer/shared-head.ts'
import { Pages, type PagesOptions } from './cache/pages.ts'
import { makeReadPools, RangeReader } from './range.ts'

/** `path`: the base path as clients see it, which ends with a slash, for the `Link` to the next page. */
export type ListOptions = {
  access: onRequestHookHandler
  log: PlantLog
  storeId: string
  path: string
} & ListSenderOptions &
  Omit<PagesOptions, 'jobs'>

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
  const { access, log, storeId, path } = options
  const cursors = makeCursors(storeId)
  const represent = makeRepresentations({ storeId, path, cursors })
  const ranges = new RangeReader(log, makeReadPools())
  const pages = new Pages(ranges, { ...options, jobs: new FairPool({ slots: codecJobs }) })
  const sender = new ListSender(pages, options)
  const head = new SharedHead(log, answer)
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
    const list = represent(head, after, limit)
    const codings = negotiate(request.headers['accept-encoding'])
    /** All forms that the client accepts; the one that it would get now comes first. */
    const forms = (): [Form, ...Form[]] => {
      const now = pages.predict(list.range, codings)
      return [list.form(now), ...codings.filter((coding) => coding !== now).map(list.form)]
    }
    const current = findCurrent(request, forms, 'list')
    if (current) sender.sendHead(reply.code(304), current.headersOf304)
    else if (request.method === 'HEAD') sender.sendHead(reply, forms()[0].headers)
    else sender.send(reply, list, codings)
  }
}

function badCursor(): ProblemError {
  const detail = 'must be taken from the Link header of a list of this store'
  return invalid([{ code: 'format', detail, parameter: 'after' }])
}
