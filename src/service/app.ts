// The one place where the parts are joined: a Fastify app that serves one store. It does not listen by itself.
import type { IncomingMessage } from 'node:http'
import fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Config } from '../config/load-config.ts'
import { requireBearer } from '../http/access/authentication.ts'
import { makeChallenge } from '../http/access/challenge.ts'
import { acceptJsonBodies } from '../http/bodies.ts'
import { makeAddressOf } from '../http/connection/address.ts'
import { RequestHead } from '../http/connection/connection.ts'
import type { Exchange } from '../http/connection/exchange.ts'
import { InFlight } from '../http/connection/in-flight.ts'
import { exposedHeaders, makeCorsHeaders, preflightSeconds } from '../http/cors.ts'
import { makeFailureLog } from '../http/failure-log.ts'
import { type GuardOptions, guardRequests } from '../http/guard.ts'
import { ConnectionLimit } from '../http/max-connections.ts'
import { listMethods } from '../http/operation.ts'
import { makeDescribeProblem, makeErrorHandler } from '../http/problems.ts'
import { answerOddRequests, makeClientErrorHandler } from '../http/socket-answers.ts'
import { makeCompilers } from '../http/validation.ts'
import { drainMs, headersMs, inFlightBytes, maxHeaderBytes, receiveMs, threadBytes } from '../limits.ts'
import { ConnectionLog } from '../logging/connection-log.ts'
import { addRoute } from '../plants/add/add-route.ts'
import { listRoutes } from '../plants/list/list-route.ts'
import { add, list, operations } from '../plants/operations.ts'
import { type Meter, noMeter } from '../runtime/meter.ts'
import { TimeSlices } from '../runtime/time-slices.ts'
import { serveDocs, serveResource } from '../site/serve-docs.ts'
import type { Store } from '../store/engine.ts'
import { describeResource, issuerOf } from '../tokens/oidc/issuer.ts'
import { Tokens } from '../tokens/tokens.ts'
import { makeVerifier } from '../tokens/verifier.ts'
import { makeShared, type Shared } from './shared.ts'

export type AppOptions = {
  store: Store
  config: Config
  logger: Logger
  /** Called for every request that has ended. */
  report?: (exchange: Exchange) => void
  beginSpan?: GuardOptions['beginSpan']
  /** Memory shared with the other threads of the process. */
  shared?: Shared
  /** The limit of connections, if the caller needs its counts. */
  connections?: ConnectionLimit
  /** Takes the metrics of the parts. */
  meter?: Meter
}

/** Methods of all operations and documents. */
const methods = listMethods(operations)

/*
 * The stages of a request:
 *   connections      beyond the limit, the address that has most makes room, or the new one is refused
 *   sockets          bytes that are not HTTP are answered below the router
 *   connection       it is the last of its connection when too many others are outstanding
 *   in-flight        the request is observed until its answer is sent, and answered when it times out
 *   guard            it is refused when its head is not valid
 *   authentication   its token is checked, and the request counted, before its body is read
 *   bodies           its body is read: JSON in UTF-8
 *   validation       body and query are checked by the schemas
 *   plants           add: group commit; list: shared head, pages
 *   problems         errors thrown on the way become answers
 */
/** Builds the app; `app.ready()` or `app.listen()` finish it, `app.close()` ends it and leaves the store open. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { store, config, logger, shared } = options
  const parts = makeParts(options)
  const { guard, slices, inFlight, failures, meter, issuer, resource, challenge } = parts
  const app = makeServer(config, parts)
  if (config.corsOrigin !== false)
    await app.register(import('@fastify/cors'), {
      origin: config.corsOrigin,
      methods,
      exposedHeaders,
      maxAge: preflightSeconds,
      strictPreflight: false,
    })
  app.addHook('onRequest', guard.requireRoute)
  serveDocs(app, { basePath: config.basePath, operations, issuer })
  if (resource) serveResource(app, resource)

  const { log, id: storeId } = store
  // Loaded on demand, with its library.
  const verifyOther =
    issuer && (await import('../tokens/oidc/issuer-tokens.ts')).acceptIssuer(issuer, { logger, meter })
  const verify = makeVerifier(new Tokens(store.tokens), { ...config, logger, verifyOther })
  const guarded = await requireBearer(app, verify, { ...config, shared, slices, challenge })
  const prefix = config.basePath.slice(0, -1)
  await app.register(addRoute, { prefix, route: guarded(add), log, meter })
  const listOptions = { log, storeId, path: config.basePath, slices, inFlight, failures, meter, logger }
  await app.register(listRoutes, { prefix, route: guarded(list), ...listOptions })
  return app
}

/** Makes the parts that all requests of an app share. */
export function makeParts(options: Omit<AppOptions, 'store'> & { store?: Store }) {
  const { store, config, logger, report, beginSpan, shared = makeShared(1), meter = noMeter } = options
  const { connections = new ConnectionLimit({ max: config.maxConnections, logger, ...shared }) } = options
  const failures = makeFailureLog(logger, store?.fault)
  const log = new ConnectionLog(logger)
  const maxBytes = Math.max(threadBytes, inFlightBytes / shared.counts.length)
  const isDraining = () => Atomics.load(shared.draining, 0) !== 0
  const slices = new TimeSlices()
  const addressOf = makeAddressOf(config.trustProxy, logger)
  const inFlight = new InFlight({ log, addressOf, isDraining, maxBytes }, (exchange) => {
    failures.ended(exchange)
    report?.(exchange)
  })
  inFlight.show(meter)
  connections.show(meter)
  const describeProblem = makeDescribeProblem(config.basePath)
  const corsHeaders = makeCorsHeaders(config.corsOrigin)
  const guard = guardRequests(inFlight, { methods, slices, cors: config.corsOrigin !== false, beginSpan })
  const issuer = issuerOf(config)
  const resource = issuer && describeResource(issuer)
  const challenge = makeChallenge({ resource: resource?.url, scopePrefix: issuer?.oidcScopePrefix })
  const handleError = makeErrorHandler(failures, { describeProblem, challenge })
  const socketContext = { inFlight, log, describeProblem, corsHeaders }
  const access = { issuer, resource, challenge }
  return { failures, slices, inFlight, connections, meter, guard, handleError, socketContext, ...access }
}

/** Makes the server, and sets up connections, from their beginning to the end of the app. */
export function makeServer(config: Config, parts: ReturnType<typeof makeParts>): FastifyInstance {
  const { guard, handleError, socketContext, connections, inFlight } = parts
  const app: FastifyInstance = fastify({
    logger: false,
    http: {
      requireHostHeader: false,
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: headersMs,
      connectionsCheckingInterval: 500,
      IncomingMessage: RequestHead as typeof IncomingMessage,
      // A request with an `Upgrade` is served (RFC 9110, section 7.8).
      shouldUpgradeCallback: () => false,
    },
    requestTimeout: receiveMs,
    // Node takes 0 for no limit.
    keepAliveTimeout: Math.max(1, config.keepAliveMs),
    return503OnClosing: false,
    exposeHeadRoutes: false,
    schemaController: makeCompilers(),
    clientErrorHandler: makeClientErrorHandler(socketContext),
    frameworkErrors(error, request, reply) {
      handleError(guard.refuse(error, request, reply), request, reply)
    },
  })
  app.setErrorHandler(handleError)
  // Without a handler no hooks would run; `guard.requireRoute` has answered before it.
  app.setNotFoundHandler(String)
  acceptJsonBodies(app)
  connections.guard(app.server, socketContext)
  answerOddRequests(app.server, socketContext)
  app.addHook('onRequest', guard.onRequest)
  app.addHook('onSend', guard.onSend)
  app.addHook('preClose', async () => {
    inFlight.drain(app.server, drainMs)
    connections.close()
  })
  app.addHook('onClose', async () => {
    inFlight.close()
    socketContext.log.close()
  })
  return app
}
