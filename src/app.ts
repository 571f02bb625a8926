// The only place where the parts are joined: a Fastify app that serves one store. It does not listen by itself.
import cors from '@fastify/cors'
import fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { components } from '../schemas/index.ts'
import type { Config } from './config.ts'
import { requireBearer } from './http/authentication.ts'
import { acceptJsonBodies } from './http/bodies.ts'
import { describeRoutes, serveDocs } from './http/docs.ts'
import { guardRequests } from './http/guard.ts'
import { type Access, Requests } from './http/in-flight.ts'
import { makeErrorHandler } from './http/problems.ts'
import { answerOddRequests, makeClientErrorHandler } from './http/sockets.ts'
import { makeValidatorCompiler } from './http/validation.ts'
import { addRoute } from './plants/add.ts'
import { listRoutes } from './plants/list.ts'
import { Turns } from './plants/turns.ts'
import type { Store } from './store/store.ts'
import { Tokens } from './tokens/tokens.ts'
import { makeVerifier } from './tokens/verifier.ts'

export type AppOptions = {
  store: Store
  config: Pick<Config, 'accessTokens' | 'basePath' | 'trustProxy' | 'corsOrigin'>
  logger: Logger
  /** Is told of every answered request. */
  report?: (access: Access) => void
}

/** Requests that are not there in full after this long are answered 408. */
const headersTimeoutMs = 10_000
const requestTimeoutMs = 20_000
/** Longer than the idle time-out of common load balancers (60 s), so that they close first. */
const keepAliveTimeoutMs = 72_000
/** How long a shutdown waits for requests in flight before it cuts them. */
const drainMs = 8_000

/** Builds the app; `app.ready()` or `app.listen()` finish it, `app.close()` ends it and leaves the store open. */
export async function buildApp({
  store,
  config,
  logger,
  report = () => {},
}: AppOptions): Promise<FastifyInstance> {
  const requests = new Requests(report)
  const handleError = makeErrorHandler(logger)
  const guard = guardRequests(requests)
  const app: FastifyInstance = fastify({
    logger: false,
    http: { requireHostHeader: false, headersTimeout: headersTimeoutMs, connectionsCheckingInterval: 1000 },
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    return503OnClosing: false,
    trustProxy: config.trustProxy,
    exposeHeadRoutes: false,
    clientErrorHandler: makeClientErrorHandler(requests),
    frameworkErrors(error, request, reply) {
      guard.observe(request, reply)
      handleError(error, request, reply)
    },
  })

  app.setErrorHandler(handleError)
  app.setNotFoundHandler(guard.notFound)
  app.setValidatorCompiler(makeValidatorCompiler())
  for (const schema of components) app.addSchema(schema)
  acceptJsonBodies(app)
  answerOddRequests(app.server)
  app.addHook('onRequest', guard.onRequest)
  app.addHook('preClose', async () => requests.drain(app.server, drainMs))

  if (config.corsOrigin !== false)
    await app.register(cors, {
      origin: config.corsOrigin,
      exposedHeaders: ['ETag', 'Link', 'Retry-After', 'WWW-Authenticate'],
      strictPreflight: false,
    })
  app.addHook('onRequest', guard.requireRoute)
  await describeRoutes(app, config.basePath)
  await serveDocs(app, config.basePath)
  const verify = makeVerifier(new Tokens(store.sql), { accessTokens: config.accessTokens, logger })
  const bearer = await requireBearer(app, verify)
  const prefix = config.basePath.slice(0, -1)
  const turns = new Turns((error) => logger.error({ err: error }, 'an answer failed'))
  const { log, id: storeId } = store
  await app.register(addRoute, { prefix, access: bearer('plants:write'), log, turns })
  const access = bearer('plants:read')
  await app.register(listRoutes, { prefix, access, log, storeId, path: config.basePath, turns, logger })
  return app
}
