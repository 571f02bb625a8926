// The parts of every thread that serves requests: the store, an app on it, and a log line per request.
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

/** Opens the store at a URL, or at the `port` that it is shared at; `metrics` count what is done with it. */
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

/** `close` ends the app once what is in flight is answered, and leaves the store open; `sendSpans` comes after it. */
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
  // Its libraries are loaded where they are needed.
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
