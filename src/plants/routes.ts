// The two operations: add a plant, list plants.
import { createHash } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import buildSerializer from 'fast-json-stringify'
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { ref } from '../../schemas/component.ts'
import { ListHeaders, ListQuery, NewPlant, NoQuery, Plant } from '../../schemas/plant.ts'
import { createPlantResponses, listPlantsResponses } from '../../schemas/responses.ts'
import { requirePlainJson } from '../http/bodies.ts'
import { ProblemError } from '../http/problem-error.ts'
import type { Outcome, PlantLog } from '../store/store.ts'
import { makeCursors } from './cursor.ts'
import { etagMatches } from './etag.ts'
import { GroupCommit } from './group-commit.ts'
import { Pages, pagePlants } from './pages.ts'
import { SharedHead } from './shared-head.ts'

/** Requests on their way. */
type Adding = { reply: FastifyReply; item: string }
type Listing = { request: FastifyRequest; reply: FastifyReply }

export type PlantRoutesOptions = {
  access: { read: onRequestHookHandler; write: onRequestHookHandler }
  log: PlantLog
  storeId: string
  path: string
}

const serializePlant = buildSerializer(Plant)

/** `path`: where these routes are as clients see them; it starts the `Link` to a next page. */
export const plantRoutes: FastifyPluginAsyncTypebox<PlantRoutesOptions> = async (
  app,
  { access, log, storeId, path },
) => {
  const commits = new GroupCommit<Adding>(log, { answer: answerAdded, fail })
  const head = new SharedHead<Listing>(log, { answer: answerList, fail })
  const pages = new Pages(log)
  const cursors = makeCursors(storeId)
  const storeTag = createHash('sha256').update(storeId).digest('base64url').slice(0, 8)

  app.post('/plants', {
    onRequest: access.write,
    preParsing: requirePlainJson,
    schema: {
      tags: ['plants'],
      operationId: 'createPlant',
      summary: 'Add a plant',
      description:
        'Answers once the plant is on stable storage. With an `id` a request can be repeated safely.',
      body: ref(NewPlant),
      querystring: NoQuery,
      response: createPlantResponses,
    },
    handler(request, reply): void {
      // This text is what the log keeps and what every answer shows: a plant is serialized once in its life.
      const { id } = request.body
      const item = serializePlant(request.body)
      commits.append({ item, id }, { reply, item })
    },
  })

  const list = {
    onRequest: access.read,
    schema: {
      tags: ['plants'],
      operationId: 'listPlants',
      summary: 'List plants',
      description:
        'In the order in which they were added. The list holds every plant whose addition was answered before the ' +
        'request came.',
      headers: ListHeaders,
      querystring: ListQuery,
      response: listPlantsResponses,
    },
    handler(request: FastifyRequest, reply: FastifyReply): void {
      head.wait({ request, reply })
    },
  }
  app.get('/plants', list)
  app.head('/plants', { ...list, schema: { ...list.schema, hide: true } })

  function answerList(end: number, { request, reply }: Listing): void {
    const { limit = Number.POSITIVE_INFINITY, after: cursor } = request.query as ListQuery
    const after = cursor === undefined ? 0 : cursors.decode(cursor)
    if (after === undefined || after > end) return void reply.send(badCursor())
    const last = Math.min(after + limit, end)
    const key = `${after}-${last}`
    const etag = `"${storeTag}-${key}"`
    reply.header('etag', etag).header('cache-control', 'private, no-cache')
    if (last < end && limit > 0) reply.header('link', linkTo(last, limit))
    const condition = request.headers['if-none-match']
    if (condition !== undefined && etagMatches(condition, etag)) return void reply.code(304).send()
    reply.header('content-type', 'application/json; charset=utf-8')
    if (request.method === 'HEAD') reply.send()
    else if (last - after > pagePlants) reply.send(pages.stream(after, last))
    else sendPage(reply, pages.cached(key) ?? pages.page(key, after, last))
  }

  function linkTo(after: number, limit: number): string {
    return `<${path}plants?after=${cursors.encode(after)}&limit=${limit}>; rel="next"`
  }
}

function answerAdded(outcome: Outcome, { reply, item }: Adding): void {
  if (outcome === 'conflict') reply.send(conflict())
  else reply.header('content-type', 'application/json; charset=utf-8').send(item)
}

function sendPage(reply: FastifyReply, page: Buffer | Promise<Buffer>): void {
  if (page instanceof Promise)
    page.then(
      (bytes) => reply.send(bytes),
      (error) => reply.send(error),
    )
  else reply.send(page)
}

function fail(error: unknown, { reply }: { reply: FastifyReply }): void {
  reply.send(error)
}

function conflict(): ProblemError {
  return new ProblemError('conflict', 'A plant with this id is there, with another name or tag.')
}

function badCursor(): ProblemError {
  const detail = 'must be taken from the Link header of a list of this store'
  return new ProblemError('invalid', 'The request has 1 fault.', { errors: [{ detail, parameter: 'after' }] })
}
