// The parts of an HTTP thread: the store, an app on it, and a log line per request.
import type { FastifyInstance } from 'fastify'
import type { Config } from '../../config/load-config.ts'
import { traceOptionsOf } from '../../config/trace-settings.ts'
import { makeAccessLog } from '../../http/access-log.ts'
import type { Exchange } from '../../http/connection/exchange.ts'
import type { ServiceLog } from '../../logging/open-log.ts'
import { noMeter } from '../../runtime/meter.ts'
import { openStore } from '../../store/open.ts'
import { type Store, type StoreOptions, serviceName } from '../../store/store.ts'
import type { ThreadMetrics } from '../admin/thread-metrics.ts'
import { buildApp } from '../app.ts'
import type { Shared } from './shared.ts'

const logFlushMs = 250

/** Opens the store by its URL, or through the `port` at which it is shared; `metrics` count its operations. */
export async function openCounted(
  url: string,
  options: Pick<StoreOptions, 'logger' | 'port'>,
  metrics: ThreadMetrics | undefined,
): Promise<Store> {
  if (!metrics) return await openStore(url, { ...options, name: serviceName })
  const { countReconnect: reconnected, registry } = metrics
  const store = await openStore(url, { ...options, name: serviceName, reconnected })
  const { watchLog } = await import('../admin/watched-log.ts')
  return { ...store, log: watchLog(store.log, registry) }
}

export type HttpWorkerOptions = {
  store: Store
  config: Config
  log: Pick<ServiceLog, 'logger' | 'sink' | 'mask'>
  metrics: ThreadMetrics | undefined
  shared: Shared
  isDraining: () => boolean
}

/** `close` ends the app after requests in flight, and leaves the store open; `sendSpans` is called after it. */
export type HttpWorker = { readonly app: FastifyInstance; close(): Promise<void>; sendSpans(): Promise<void> }

export async function buildHttpWorker({
  store,
  config,
  log: { logger, sink, mask },
  metrics,
  shared,
  isDraining,
}: HttpWorkerOptions): Promise<HttpWorker> {
  const accessLog = makeAccessLog(sink, { isIso: config.logTime === 'iso', mask })
  const flushing = setInterval(accessLog.flush, logFlushMs).unref()
  const add = logger.isLevelEnabled('info') ? accessLog.add : () => {}
  const options = traceOptionsOf(config)
  // Loaded on demand, with its libraries.
  const { Traces } = options ? await import('../traces.ts') : {}
  const around = { logger, mask, meter: metrics ?? noMeter, ...shared }
  const traces = options && Traces && new Traces(options, around)
  const report = (exchange: Exchange) => {
    add(exchange)
    metrics?.count(exchange)
    traces?.add(exchange)
  }
  const app = await buildApp({
    store,
    config,
    logger,
    report,
    beginSpan: traces?.begin,
    shared,
    isDraining,
    ...(metrics && { meter: metrics }),
  })
  return {
    app,
    async close() {
      await app.close()
      clearInterval(flushing)
      accessLog.flush()
    },
    sendSpans: async () => await traces?.end(),
  }
}
