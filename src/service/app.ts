// The only place where the parts are joined: a Fastify app that serves one store. It does not listen by itself.
import fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Config } from './config/config.ts'
import { serveDocs } from './docs/serve-docs.ts'
import { requireBearer } from './http/authentication.ts'
import { acceptJsonBodies } from './http/bodies.ts'
import { makeCompilers } from './http/compilers.ts'
import type { Access } from './http/exchange.ts'
import { FailureLog } from './http/failure-log.ts'
import { guardRequests } from './http/guard.ts'
import { collectWhenIdle } from './http/idle-collection.ts'
import { InFlight } from './http/in-flight.ts'
import { ConnectionLimit } from './http/max-connections.ts'
import { makeDescribeProblem, makeErrorHandler } from './http/problems.ts'
import { rateLimitFields } from './http/rate-limit.ts'
import { answerOddRequests, makeClientErrorHandler } from './http/sockets.ts'
import { drainMs, headersMs, inFlightBytes, maxHeaderBytes, receiveMs, threadBytes } from './limits.ts'
import { ConnectionLog } from './log/connection-log.ts'
import { type Meter, noMeter } from './meter.ts'
import { addRoute } from './plants/add.ts'
import { listRoutes } from './plants/list.ts'
import { operations } from './plants/operations.ts'
import { Turns } from './plants/turns.ts'
import type { Store } from './store/store.ts'
import type { Shared } from './threads/shared.ts'
import { Tokens } from './tokens/tokens.ts'
import { makeVerifier } from './tokens/verifier.ts'

export type AppOptions = {
  store: Store
  config: Pick<
    Config,
    | 'accessTokens'
    | 'basePath'
    | 'trustProxy'
    | 'corsOrigin'
    | 'rateLimit'
    | 'authFailureLimit'
    | 'maxConnections'
    | 'keepAliveMs'
  >
  logger: Logger
  /** Is told of every answered request. */
  report?: (access: Access) => void
  /** What it counts together with the other threads of the process. */
  shared?: Shared
  /** Refuses connections, for whoever wants to know how many there are. */
  connections?: ConnectionLimit
  /** Takes what the parts have to show. */
  meter?: Meter
  /** Whether it is to end soon: then each answer ends its connection. */
  isDraining?: () => boolean
}

/*
 * The stages of a request:
 *   connections one too many is refused
 *   sockets     what is no HTTP at all is answered below the router
 *   in-flight   the request is observed until its answer is out, and answered when its time is up
 *   guard       it waits for its turn on its connection, and is refused when it is no proper request
 *   authentication   its token is checked, and its requests are counted, before anything of a body is read
 *   bodies      its body is read: JSON in UTF-8
 *   validation  body and query are held against the schemas
 *   plants      add: group commit; list: shared head, pages
 *   problems    what was thrown on the way becomes the answer
 */
/** Builds the app; `app.ready()` or `app.listen()` finish it, `app.close()` ends it and leaves the store open. */
export async function buildApp({
  store,
  config,
  logger,
  report = () => {},
  shared,
  connections = new ConnectionLimit({ max: config.maxConnections, logger, ...shared }),
  meter = noMeter,
  isDraining = () => false,
}: AppOptions): Promise<FastifyInstance> {
  const failures = new FailureLog(logger)
  const connectionLog = new ConnectionLog(logger)
  const maxBytes = Math.max(threadBytes, inFlightBytes / (shared?.counts.length ?? 1))
  const inFlight = new InFlight({ log: connectionLog, isDraining, maxBytes }, (exchange) => {
    failures.ended(exchange)
    report(exchange)
  })
  inFlight.show(meter)
  connections.show(meter)
  const describeProblem = makeDescribeProblem(config.basePath)
  const below = { inFlight, log: connectionLog, describeProblem }
  const handleError = makeErrorHandler(failures, describeProblem)
  const guard = guardRequests(inFlight, { cors: config.corsOrigin !== false })
  const app: FastifyInstance = fastify({
    logger: false,
    http: {
      requireHostHeader: false,
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: headersMs,
      connectionsCheckingInterval: 500,
    },
    requestTimeout: receiveMs,
    // Node takes 0 for no limit.
    keepAliveTimeout: Math.max(1, config.keepAliveMs),
    return503OnClosing: false,
    trustProxy: config.trustProxy,
    exposeHeadRoutes: false,
    schemaController: makeCompilers(),
    clientErrorHandler: makeClientErrorHandler(below),
    frameworkErrors(error, request, reply) {
      const flaw = guard.refuse(error, request, reply)
      if (flaw) handleError(flaw, request, reply)
    },
  })

  app.setErrorHandler(handleError)
  app.setNotFoundHandler(guard.notFound)
  acceptJsonBodies(app)
  connections.guard(app.server, below)
  answerOddRequests(app.server, below)
  app.addHook('onRequest', guard.onRequest)
  app.addHook('preClose', async () => {
    inFlight.drain(app.server, drainMs)
    connections.close()
  })
  const collection = collectWhenIdle(() => inFlight.isIdle)
  app.addHook('onClose', async () => {
    collection.close()
    inFlight.close()
    connectionLog.close()
  })

  if (config.corsOrigin !== false) {
    app.addHook('onRequest', guard.beforeCors)
    await app.register(import('@fastify/cors'), {
      origin: config.corsOrigin,
      exposedHeaders: ['ETag', 'Link', ...rateLimitFields, 'Retry-After', 'WWW-Authenticate', 'X-Request-Id'],
      strictPreflight: false,
    })
  }
  app.addHook('onRequest', guard.requireRoute)
  serveDocs(app, config.basePath, operations)
  const verify = makeVerifier(new Tokens(store.sql), { accessTokens: config.accessTokens, logger })
  const bearer = await requireBearer(app, verify, { ...config, shared })
  const prefix = config.basePath.slice(0, -1)
  const turns = new Turns((error) => logger.error({ err: error }, 'an answer failed'))
  const { log, id: storeId } = store
  await app.register(addRoute, { prefix, access: bearer('plants:write'), log, turns, meter })
  const access = bearer('plants:read')
  await app.register(listRoutes, {
    prefix,
    access,
    log,
    storeId,
    path: config.basePath,
    turns,
    inFlight,
    failures,
    meter,
  })
  return app
}
