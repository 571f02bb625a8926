// Registers the plugins and routes in the order in which they handle a request.
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import fastify, { type FastifyBaseLogger, LogController } from 'fastify'
import { headers } from '../schemas/headers.ts'
import { components } from '../schemas/index.ts'
import { maxBodyBytes, type ProblemCode } from '../schemas/problems.ts'
import type { Meter } from './metrics.ts'
import { ajvOptions } from './plants/faults.ts'
import { type AccessLogOptions, accessLog } from './plugins/access-log.ts'
import { auth } from './plugins/auth.ts'
import { docs } from './plugins/docs/docs.ts'
import { answerWithProblems, errors, routeErrors } from './plugins/errors.ts'
import { json } from './plugins/json.ts'
import { makeRequestIds, maxRequestsPerSocket, requests } from './plugins/requests.ts'
import { describeResource, resourceMetadata } from './plugins/resource-metadata.ts'
import { addPlant } from './routes/add-plant.ts'
import { listPlants } from './routes/list-plants.ts'
import type { Settings } from './settings.ts'
import type { PlantLog } from './store/engine.ts'
import { describeSignIn, discoveryUrl, issuerOf } from './tokens/issuer.ts'
import type { Verify } from './tokens/verifier.ts'

/** `write`, `mask`, `count`: see the access log. `countProblem`: counts responses to malformed requests. */
export type AppOptions = AccessLogOptions & {
  log: PlantLog
  settings: Settings
  verify: Verify
  logger: FastifyBaseLogger
  meter: Meter
  countProblem?: ((code: ProblemCode) => void) | undefined
}

/** Builds the app. `app.close()` leaves the store open. */
export async function buildApp(options: AppOptions) {
  const { log, settings, verify, logger, meter, write, mask, count, countProblem } = options
  const { basePath, trustProxy, corsOrigin: origin, rateLimit: rate } = settings
  const app = fastify({
    loggerInstance: logger,
    // The plugin `accessLog` logs requests; a child logger per request would double its cost.
    logController: new LogController({ disableRequestLogging: true }),
    childLoggerFactory: (parent) => parent,
    genReqId: makeRequestIds(mask),
    trustProxy,
    // A slow machine may take longer than Fastify's 10 s to load the plugins.
    pluginTimeout: 60_000,
    bodyLimit: maxBodyBytes,
    http: { headersTimeout: 10_000, connectionsCheckingInterval: 500, requireHostHeader: false },
    requestTimeout: 20_000,
    connectionTimeout: 30_000,
    // Fastify replaces 0 with its default.
    keepAliveTimeout: settings.keepAliveMs || 1,
    maxRequestsPerSocket,
    return503OnClosing: false,
    ajv: { customOptions: ajvOptions },
    ...answerWithProblems(basePath, countProblem),
  }).withTypeProvider<TypeBoxTypeProvider>()

  // A half-closed client still gets complete responses. Node has no documented option for this.
  Object.assign(app.server, { httpAllowHalfOpen: true })
  for (const schema of components) app.addSchema(schema)
  // Order of the `onRequest` hooks: log, trace, id, framing, CORS, path, token, rate limit, scope.
  await app.register(accessLog, { write, mask, count })
  // Rarely used plugins are imported only if they are enabled.
  if (settings.otlpEndpoint !== undefined)
    await app.register((await import('./plugins/tracing.ts')).tracing, { meter, mask })
  await app.register(requests)
  await app.register(errors, { basePath })
  const policy = { origin, exposedHeaders: Object.keys(headers), strictPreflight: false, maxAge: 7200 }
  if (origin !== false) await app.register(import('@fastify/cors'), policy)
  await app.register(routeErrors)
  await app.register(json)
  const issuer = issuerOf(settings)
  const resource = issuer && describeResource(issuer)
  const openIdConnectUrl = issuer && discoveryUrl(issuer)
  await app.register(docs, { basePath, openIdConnectUrl, signIn: issuer && describeSignIn(issuer) })
  if (resource) await app.register(resourceMetadata, resource)
  await app.register(
    async (api) => {
      await api.register(auth, { verify, resource: resource?.url, scopePrefix: issuer?.oidcScopePrefix })
      if (rate) await api.register((await import('./plugins/rate-limit.ts')).rateLimit, rate)
      await api.register(addPlant, { log, meter })
      await api.register(listPlants, { log, meter })
    },
    { prefix: basePath.slice(0, -1) },
  )
  // Compiles the schemas.
  await app.ready()
  return app
}
