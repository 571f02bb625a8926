// The map of the service: everything that a request meets, in this order.
import cors from '@fastify/cors'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import fastify, { type FastifyBaseLogger, LogController } from 'fastify'
import { components } from '../schemas/index.ts'
import type { Meter } from './metrics.ts'
import { ajvOptions } from './plants/plant-faults.ts'
import { accessLog } from './plugins/access-log.ts'
import { auth, type Challenge } from './plugins/auth.ts'
import { docs, type DocsOptions } from './plugins/docs/docs.ts'
import { errors, makeClientErrorHandler } from './plugins/errors.ts'
import { headers, makeRequestId } from './plugins/headers.ts'
import { rateLimit } from './plugins/rate-limit.ts'
import { requests } from './plugins/requests.ts'
import { addPlant } from './routes/add-plant.ts'
import { listPlants } from './routes/list-plants.ts'
import type { PlantLog } from './store/engine.ts'
import type { Verify } from './tokens/verifier.ts'

export type AppOptions = {
  log: PlantLog
}
