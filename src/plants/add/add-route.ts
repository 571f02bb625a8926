// The add operation: answered once the plant is on stable storage.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ref } from '../../../schemas/component.ts'
import { NewPlant, NoQuery, Plant } from '../../../schemas/plant.ts'
import { problems } from '../../../schemas/problems.ts'
import type { AccessHooks } from '../../http/access/authentication.ts'
import { sendAnswer } from '../../http/answer.ts'
import { requirePlainJson } from '../../http/bodies.ts'
import { exchangeOf } from '../../http/connection/in-flight.ts'
import { ProblemError } from '../../http/problem-error.ts'
import { requestMs, storeLimitMs } from '../../limits.ts'
import type { Meter } from '../../runtime/meter.ts'
import type { PlantLog } from '../../store/store.ts'
import { serializeItem } from '../item.ts'
import { type AnswerAdded, GroupCommit } from './group-commit.ts'

export type AddOptions = { access: AccessHooks; log: PlantLog; meter: Meter }

export const addSchema = {
  tags: ['plants'],
  operationId: 'createPlant',
  summary: 'Add a plant',
  description:
    'Answers once the plant is on stable storage. With an `id` a request can be repeated safely. Additions are not ' +
    'conditional: with `If-Match` or `If-None-Match` nothing is added.',
  body: ref(NewPlant),
  querystring: NoQuery,
  response: { 200: ref(Plant) },
}

const jsonHeaders = { 'content-type': 'application/json' }

const answer: AnswerAdded = (outcome, reply, { item }) => {
  if (outcome === 'conflict') throw new ProblemError(problems.idTaken)
  if (outcome !== 'added' && outcome !== 'replayed') throw new Error(`the store's outcome is ${outcome}`)
  sendAnswer(reply, jsonHeaders, item)
}

export const addRoute: FastifyPluginAsyncTypebox<AddOptions> = async (app, { access, log, meter }) => {
  const commits = new GroupCommit(log, answer, meter)

  app.post('/plants', {
    ...access,
    preParsing: requirePlainJson,
    schema: addSchema,
    handler(request, reply): void {
      const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = request.headers
      if (ifMatch !== undefined || ifNoneMatch !== undefined)
        throw new ProblemError(problems.conditionalAddition)
      const item = serializeItem(request.body)
      // The store's deadline leaves time for the answer.
      const deadlineMs = exchangeOf(reply.request).deadlineMs - (requestMs - storeLimitMs)
      commits.append({ item, id: request.body.id }, reply, deadlineMs)
    },
  })
}
