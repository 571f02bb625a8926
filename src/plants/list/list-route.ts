// The list operation: a page of the log, or all of it, no older than the request. Its data flows down through three parts
// and up again, and none knows the one above:
//   answer/    the head of the log, and the representation of the list up to there, with entity tag and Link; whether the
//              client has it already, and how it is sent
//   cache/     the bytes of pages by name, plain and compressed; who reads and compresses a page, and when
//   range.ts   the bytes of a range of the log: parts, pages joined from them, streams of long lists
// A request waits for the head (shared-head.ts), gets its representation (representations.ts), and is sent what `Pages`
// has or makes of its range (list-sender.ts). What is shared fairly between tokens is made here, and handed down.
import type { FastifyPluginAsync, FastifyReply } from 'fastify'
import { Conditions, ListQuery } from '../../../schemas/plant.ts'
import type { GuardedRoute } from '../../http/access/authentication.ts'
import { invalid, type ProblemError } from '../../http/problem-error.ts'
import { codecJobs } from '../../limits.ts'
import { FairPool } from '../../runtime/fair-pool.ts'
import type { Head, PlantLog } from '../../store/engine.ts'
import { ListSender, type ListSenderOptions } from './answer/list-sender.ts'
import { makeCursors, makeRepresentations } from './answer/representations.ts'
import { SharedHead } from './answer/shared-head.ts'
import { Pages, type PagesOptions } from './cache/pages.ts'
import { makeReadPools, RangeReader } from './range.ts'

/** `path`: the base path as clients see it, which ends with a slash, for the `Link` to the next page. */
export type ListOptions = {
  route: GuardedRoute
  log: PlantLog
  storeId: string
  path: string
} & ListSenderOptions &
  Omit<PagesOptions, 'jobs'>

export const listSchema = {
  operationId: 'listPlants',
  summary: 'List plants',
  description:
    'Plants in the order in which they were added. The list contains every plant whose addition was answered before ' +
    'the request arrived.',
  querystring: ListQuery,
  headers: Conditions,
}

export const listRoutes: FastifyPluginAsync<ListOptions> = async (app, options) => {
  const { route, log, storeId, path } = options
  const cursors = makeCursors(storeId)
  const represent = makeRepresentations({ storeId, path, cursors })
  const ranges = new RangeReader(log, makeReadPools())
  const pages = new Pages(ranges, { ...options, jobs: new FairPool({ slots: codecJobs }) })
  const sender = new ListSender(pages, options)
  const head = new SharedHead(log, answer)
  app.route({
    ...route,
    handler(_request, reply): void {
      head.wait(reply)
    },
  })

  function answer(head: Head, reply: FastifyReply): void {
    const query = reply.request.query as ListQuery
    const after = query.after === undefined ? 0 : cursors.decode(query.after, head.epochs)
    if (after === undefined || after > head.position) throw badCursor()
    sender.send(reply, represent(head, after, query))
  }
}

function badCursor(): ProblemError {
  const detail = 'must be taken from the Link header of a list of this store'
  return invalid([{ code: 'format', detail, parameter: 'after' }])
}
