// The two operations: add a plant, list plants.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import buildSerializer from 'fast-json-stringify'
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { ref } from '../../schemas/component.ts'
import { ListQuery, NewPlant, NoQuery, Plant } from '../../schemas/plant.ts'
import { createPlantResponses, listPlantsResponses } from '../../schemas/responses.ts'
import { requirePlainJson } from '../http/bodies.ts'
import { ProblemError } from '../problem-error.ts'
import type { PlantLog } from '../store/store.ts'
import { makeCursors } from './cursor.ts'
import { etagMatches } from './etag.ts'
import { GroupCommit } from './group-commit.ts'
import { Pages, pagePlants } from './pages.ts'
import { shareHead } from './shared-head.ts'

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
  const commits = new GroupCommit(log)
  const head = shareHead(log)
  const pages = new Pages(log)
  const cursors = makeCursors(storeId)
  const tagPrefix = cursors.encode(0).slice(2)

  app.post('/plants', {
    onRequest: access.write,
    preParsing: requirePlainJson,
    schema: {
      operationId: 'createPlant',
      summary: 'Add a plant',
      description:
        'Answers once the plant is on stable storage. With an `id` a request can be repeated safely.',
      body: ref(NewPlant),
      querystring: NoQuery,
      response: createPlantResponses,
    },
    handler: async (request, reply) => {
      // This text is what the log keeps and what every answer shows: a plant is serialized once in its life.
      const item = serializePlant(request.body)
      if ((await commits.append({ item, id: request.body.id })) === 'conflict')
        throw new ProblemError(
          'conflict',
          `A plant with the id ${request.body.id} is there with another name or tag.`,
        )
      reply.header('content-type', 'application/json')
      return Buffer.from(item)
    },
  })

  const list = {
    onRequest: access.read,
    schema: {
      operationId: 'listPlants',
      summary: 'List plants',
      description:
        'In the order in which they were added. The list holds every plant whose addition was answered before the ' +
        'request came.',
      querystring: ListQuery,
      response: listPlantsResponses,
    },
    handler: listPlants,
  }
  app.get('/plants', list)
  app.head('/plants', { ...list, schema: { ...list.schema, hide: true } })

  async function listPlants(request: FastifyRequest, reply: FastifyReply) {
    const { limit = Number.POSITIVE_INFINITY, after: cursor } = request.query as ListQuery
    const end = await head()
    const after = cursor === undefined ? 0 : startOf(cursor, end)
    const last = Math.min(after + limit, end)
    const key = `${after}-${last}`
    const etag = `"${tagPrefix}-${key}"`
    reply.headers({ etag, 'cache-control': 'private, no-cache' })
    if (last < end && limit > 0)
      reply.header('link', `<${path}plants?after=${cursors.encode(last)}&limit=${limit}>; rel="next"`)
    const condition = request.headers['if-none-match']
    if (condition !== undefined && etagMatches(condition, etag)) return reply.code(304).send()
    reply.header('content-type', 'application/json')
    if (request.method === 'HEAD') return reply.send()
    if (last - after > pagePlants) return pages.stream(after, last)
    return pages.cached(key) ?? pages.page(key, after, last)
  }

  function startOf(cursor: string, end: number): number {
    const position = cursors.decode(cursor)
    if (position !== undefined && position <= end) return position
    const detail = 'must be taken from the Link header of a list of this store'
    throw new ProblemError('invalid', 'The request has 1 fault.', {
      errors: [{ detail, parameter: 'after' }],
    })
  }
}
