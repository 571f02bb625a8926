// Metrics and health of a service, with their server. Loaded only when ADMIN_PORT is set, as it takes a seventh of a
// start.
import { statfs } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import type { Config } from '../../config/load-config.ts'
import { refuseAddress } from '../../config/refuse-address.ts'
import { gaugeMs } from '../../limits.ts'
import { makeInTime } from '../../runtime/with-timeout.ts'
import { engineOf } from '../../store/engines.ts'
import type { Store } from '../../store/store.ts'
import { startAdminServer } from './admin-server.ts'
import type { Health } from './health.ts'
import { Metrics } from './metrics.ts'
import type { ThreadMetrics } from './thread-metrics.ts'

/** `droppedLines`: the number of log lines dropped so far. */
export type AdminOptions = { config: Config; health: Health; droppedLines: () => number }

/** Starts the server before the store is opened, which may take a while: `/readyz` answers `starting` until then. */
export async function openAdmin({ config, health, droppedLines }: AdminOptions) {
  const { databaseUrl, adminHost: host, adminPort: port } = config
  const engine = engineOf(databaseUrl)
  const metrics = new Metrics({ health, engine: engine.name.toLowerCase() })
  const help = 'Log lines that nobody read in time.'
  metrics.counter('plant_store_log_lines_dropped_total', help, droppedLines)
  const place = { host, port }
  const server = await startAdminServer(health, metrics, place).catch(refuseAddress('ADMIN_', place))
  return {
    metrics,
    address: server.address() as AddressInfo,
    /** Publishes the metrics of a store, once it is open. */
    show: (store: Store) => showStore(store, metrics, engine.path?.(databaseUrl)),
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/**
 * Publishes the head of a store's log, its unsafe settings, and the disk of its file, if it has one. Values that the
 * store does not return in time are left out: the others are needed most when the store does not answer.
 */
export function showStore(
  { log, unsafeSettings = async () => [] }: Store,
  metrics: ThreadMetrics,
  file?: string,
): void {
  const readHead = makeInTime(() => log.head(), gaugeMs)
  const readPosition = async () => (await readHead())?.position
  metrics.gauge('plant_store_head_position', 'How many plants are in the log.', readPosition)
  const nameEpoch = async () => {
    const head = await readHead()
    return head && { [head.epochs.latest]: 1 }
  }
  metrics.gauge('plant_store_epoch_info', 'The latest epoch of the log.', nameEpoch, 'sum', 'epoch')
  metrics.gauge(
    'plant_store_unsafe_settings',
    'Settings of the database server that protect acknowledged plants and are off; the log names them at the start.',
    makeInTime(async () => (await unsafeSettings()).length, gaugeMs),
  )
  if (file === undefined) return
  const disk = makeInTime(() => statfs(file), gaugeMs)
  const toBytes = (blocks: 'bavail' | 'blocks') => async () => {
    const found = await disk()
    return found && found[blocks] * found.bsize
  }
  metrics.gauge(
    'plant_store_disk_free_bytes',
    "Room left on the disk of the database's file.",
    toBytes('bavail'),
  )
  metrics.gauge('plant_store_disk_bytes', "Size of the disk of the database's file.", toBytes('blocks'))
}
