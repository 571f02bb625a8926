// The parts of an HTTP thread: the store, an app on it, and a log line per request.
import type { Config } from '../../config/load-config.ts'
import { traceOptionsOf } from '../../config/trace-settings.ts'
import { makeAccessLog } from '../../http/access-log.ts'
import type { Exchange } from '../../http/connection/exchange.ts'
import type { ServiceLog } from '../../logging/open-log.ts'
import { type Meter, noMeter } from '../../runtime/meter.ts'
import type { Store, StoreOptions } from '../../store/engine.ts'
import { openStore } from '../../store/engines.ts'
import type { ThreadMetrics } from '../admin/thread-metrics.ts'
import { buildApp } from '../app.ts'
import type { Shared } from '../shared.ts'

const logFlushMs = 250

/** Opens the store by its URL, or through the `port` at which it is shared, and counts its connections. */
export function openCounted(url: string, options: StoreOptions, meter: Meter = noMeter): Promise<Store> {
  let reconnects = 0
  const help = 'Connections to the database that were made anew.'
  meter.counter('plant_store_database_reconnects_total', help, () => reconnects)
  let lost = 0
  const loss = 'Plants that were in the log and were lost below the service.'
  meter.gauge('plant_store_lost_plants', loss, () => lost, 'max')
  return openStore(url, {
    ...options,
    isService: true,
    reconnected: () => reconnects++,
    lost: (plants) => (lost += plants),
  })
}

export type HttpWorkerOptions = {
  store: Store
  config: Config
  log: Pick<ServiceLog, 'logger' | 'sink' | 'mask'>
  metrics?: ThreadMetrics | undefined
  shared: Shared
}

export async function buildHttpWorker({ store, config, log, metrics, shared }: HttpWorkerOptions) {
  const { logger, sink, mask } = log
  const meter = metrics ?? noMeter
  const accessLog = makeAccessLog(sink, { isIso: config.logTime === 'iso', mask })
  const flushing = setInterval(accessLog.flush, logFlushMs).unref()
  const add = logger.isLevelEnabled('info') ? accessLog.add : () => {}
  const options = traceOptionsOf(config)
  // Loaded on demand, with its libraries.
  const traces = options && (await import('../traces.ts')).makeTraces(options, { ...log, meter, ...shared })
  const report = (exchange: Exchange) => {
    add(exchange)
    metrics?.count(exchange)
    traces?.add(exchange)
  }
  const app = await buildApp({ store, config, logger, report, beginSpan: traces?.begin, shared, meter })
  return {
    app,
    /** Ends the app after requests in flight, and leaves the store open. */
    async close() {
      await app.close()
      clearInterval(flushing)
      accessLog.flush()
    },
    /** Sends the last spans, after `close`. */
    sendSpans: async () => await traces?.end(),
  }
}
