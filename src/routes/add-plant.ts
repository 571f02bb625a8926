// POST /plants: responds once the plant is on stable storage.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { preParsingHookHandler } from 'fastify'
import { ref } from '../../schemas/component.ts'
import { NewPlant, NoQuery } from '../../schemas/plant.ts'
import { maxBodyBytes, problems } from '../../schemas/problems.ts'
import { addPlantResponses } from '../../schemas/responses.ts'
import type { Meter } from '../metrics.ts'
import { shareCommits } from '../plants/group-commit.ts'
import { serializeItem } from '../plants/item.ts'
import { ProblemError } from '../problem-error.ts'
import type { PlantLog } from '../store/engine.ts'
import { storeLimitMs } from '../store/in-time.ts'
import { verdictGraceMs } from '../tokens/verifier.ts'

const schema = {
  operationId: 'createPlant',
  tags: ['plants'],
  summary: 'Add a plant',
  description: 'Responds once the plant is on stable storage. With an `id`, the request is safe to retry.',
  querystring: NoQuery,
  body: ref(NewPlant),
  response: addPlantResponses,
}

const config = { scope: 'plants:write' } as const

/** Sends 100 Continue under the same conditions as Node (RFC 9110, section 10.1.1), unless the body is too large. */
const askForBody: preParsingHookHandler = ({ raw }, reply, payload, done) => {
  const { expect = '', 'content-length': length = 0 } = raw.headers
  const isAsked = /(^|\W)100-continue($|\W)/i.test(expect) && raw.httpVersionMinor > 0
  // Without a 100, the client may send its next request instead of the body.
  if (isAsked && Number(length) > maxBodyBytes) reply.raw.shouldKeepAlive = false
  else if (isAsked) reply.raw.writeContinue()
  done(null, payload)
}

type Options = { log: PlantLog; meter: Meter }

/** Each registration has its own queue of plants. */
export const addPlant: FastifyPluginAsyncTypebox<Options> = async (app, { log, meter }) => {
  const append = shareCommits(log, meter)

  app.post('/plants', { schema, preParsing: askForBody, config }, async (request, reply) => {
    const plant = request.body
    // Malformed bytes behind this request are not answered before it is.
    app.connections.pending.set(request.raw.socket, reply.raw)
    const entry = { item: serializeItem(plant), id: plant.id }
    const outcome = await append(entry, {
      deadlineMs: Math.min(performance.now() + storeLimitMs, request.grant.untilMs + verdictGraceMs),
      // `writable` is also false after a 400 for bytes that follow the body; it is undefined for `inject`.
      isGone: () => request.raw.socket.writable === false,
    })
    if (outcome === 'conflict') throw new ProblemError(problems.idTaken)
    // The response schema omits the id.
    return plant
  })
}
