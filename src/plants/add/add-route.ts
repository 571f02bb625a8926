// The add operation: answered once the plant is on stable storage.
import type { FastifyPluginAsync } from 'fastify'
import { ref } from '../../../schemas/component.ts'
import { Conditions, NewPlant, NoQuery } from '../../../schemas/plant.ts'
import { problems } from '../../../schemas/problems.ts'
import type { GuardedRoute } from '../../http/access/authentication.ts'
import { sendAnswer } from '../../http/answer.ts'
import { requirePlainJson } from '../../http/bodies.ts'
import { exchangeOf } from '../../http/connection/in-flight.ts'
import { ProblemError } from '../../http/problem-error.ts'
import { requestMs, storeLimitMs } from '../../limits.ts'
import type { Meter } from '../../runtime/meter.ts'
import type { PlantLog } from '../../store/engine.ts'
import { serializeItem } from '../item.ts'
import { type AnswerAdded, GroupCommit } from './group-commit.ts'

export type AddOptions = { route: GuardedRoute; log: PlantLog; meter: Meter }

export const addSchema = {
  operationId: 'createPlant',
  summary: 'Add a plant',
  description:
    'Answers once the plant is on stable storage. With an `id` a request can be repeated safely. Additions are not ' +
    'conditional: with `If-Match` or `If-None-Match` nothing is added.',
  querystring: NoQuery,
  headers: Conditions,
  body: ref(NewPlant),
}

const jsonHeaders = { 'content-type': 'application/json' }

const answer: AnswerAdded = (outcome, reply, { item }) => {
  if (outcome === 'conflict') throw new ProblemError(problems.idTaken)
  if (outcome !== 'added' && outcome !== 'replayed') throw new Error(`the store's outcome is ${outcome}`)
  sendAnswer(reply, jsonHeaders, item)
}

export const addRoute: FastifyPluginAsync<AddOptions> = async (app, { route, log, meter }) => {
  const commits = new GroupCommit(log, answer, meter)

  app.route({
    ...route,
    preParsing: requirePlainJson,
    handler(request, reply): void {
      const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = request.headers
      if (ifMatch !== undefined || ifNoneMatch !== undefined)
        throw new ProblemError(problems.conditionalAddition)
      const plant = request.body as NewPlant
      const item = serializeItem(plant)
      // The store's deadline leaves time for the answer.
      const deadlineMs = exchangeOf(reply.request).deadlineMs - (requestMs - storeLimitMs)
      commits.append({ item, id: plant.id }, reply, deadlineMs)
    },
  })
}
