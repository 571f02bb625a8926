// The server for operators on ADMIN_PORT: liveness, readiness and metrics, without a token. It starts before the store.
import fastify, { type FastifyBaseLogger, LogController } from 'fastify'
import { listen } from '../listen.ts'
import { openMetrics } from '../metrics.ts'
import type { Settings } from '../settings.ts'
import type { Store } from '../store/engine.ts'
import { engineOf } from '../store/engines.ts'
import { inTime, shareRun } from '../store/in-time.ts'
import { answerWithProblems, errors, routeErrors } from './errors.ts'
import { nosniff } from './requests.ts'

/** Time that `/readyz` (probes commonly time out after 1 s) and `/metrics` wait for the store. */
const storeMs = 500

type AdminLog = { logger: FastifyBaseLogger; droppedLines: () => number }
type Options = Pick<Settings, 'adminHost' | 'adminPort' | 'databaseUrl'>

/** Starts the server. Rejects with SettingError if it cannot listen. */
export async function openAdmin(settings: Options, log: AdminLog) {
  const { adminHost: host, adminPort: port = 0, databaseUrl } = settings
  const { registry, ...metrics } = await openMetrics(engineOf(databaseUrl).name.toLowerCase())
  const { meter } = metrics
  let isDraining = false
  let check = async (): Promise<string | undefined> => 'starting'
  /** Resolves within a second to the reason why the service is not ready; undefined if it is. */
  const findFault = async () => {
    const fault = await check()
    return isDraining ? 'draining' : fault
  }
  meter.gauge('plant_store_ready', '1 if /readyz is 200, else 0.', async () => Number(!(await findFault())))
  const help = 'Log lines dropped because they were not read in time or could not be written.'
  meter.counter('plant_store_log_lines_dropped_total', help, log.droppedLines)

  const app = fastify({
    loggerInstance: log.logger,
    logController: new LogController({ disableRequestLogging: true }),
    http: { headersTimeout: 10_000, connectionsCheckingInterval: 500, requireHostHeader: false },
    requestTimeout: 10_000,
    forceCloseConnections: true,
    ...answerWithProblems('/'),
  })
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('cache-control', 'no-store').header(...nosniff)
  })
  await app.register(errors, { basePath: '/' })
  await app.register(routeErrors)
  app.get('/livez', () => ({ status: 'live' }))
  app.get('/readyz', async (_request, reply) => {
    const reason = await findFault()
    if (reason === undefined) return { status: 'ready' }
    return reply.code(503).header('retry-after', '1').send({ status: 'unready', reason })
  })
  app.get('/metrics', async (_, reply) => reply.type(registry.contentType).send(await registry.metrics()))
  const origin = await listen(app, { host, port, prefix: 'ADMIN_' }, (url) => `admin server at ${url}`)

  return {
    ...metrics,
    origin,
    /** Makes /readyz depend on the store, and adds the metrics of the store. */
    attachStore(store: Store): void {
      // Even an empty batch checks the file, the lock and the standbys. Lists need the head.
      const isWritable = shareRead(() => Promise.all([store.log.append([]), store.log.head()]))
      check = async () => ((await isWritable()) ? undefined : 'store-not-writable')
      // Omitted if it is not available in time: the other metrics are needed most when the store does not respond.
      const readPosition = shareRead(async () => (await store.log.head()).position)
      meter.gauge('plant_store_head_position', 'Number of plants in the log.', readPosition)
    },
    /** Makes /readyz fail from now on. */
    drain: () => (isDraining = true),
    close: () => app.close(),
  }
}

/**
 * Returns a function that resolves to the result of `read`, or to undefined if it fails or takes too long.
 * Concurrent callers share a read, so that an unresponsive store is not queried repeatedly.
 */
function shareRead<T>(read: () => Promise<T>): () => Promise<T | undefined> {
  const readOnce = shareRun(read)
  // The store logs its own failures.
  return () => inTime(readOnce(), storeMs).catch(() => undefined)
}
