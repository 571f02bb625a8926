// Metrics and health of a service, with their server. Loaded only when ADMIN_PORT is set, as it takes a seventh of a
// start.
import type { AddressInfo } from 'node:net'
import type { Config } from '../../config/load-config.ts'
import { refuseAddress } from '../../config/refuse-address.ts'
import { engineOf } from '../../store/engines.ts'
import type { Store } from '../../store/store.ts'
import { startAdminServer } from './admin-server.ts'
import type { Health } from './health.ts'
import { Metrics } from './metrics.ts'
import { showStore } from './watched-log.ts'

export type AdminOptions = {
  config: Config
  health: Health
  /** Number of log lines dropped so far. */
  droppedLines: () => number
}

export type Admin = {
  readonly metrics: Metrics
  readonly address: AddressInfo
  /** Publishes the metrics of a store, once it is open. */
  show(store: Store): void
  close(): void
}

/** Starts the server before the store is opened, which may take a while: `/readyz` answers `starting` until then. */
export async function openAdmin({ config, health, droppedLines }: AdminOptions): Promise<Admin> {
  const { databaseUrl, adminHost: host, adminPort: port } = config
  const engine = engineOf(databaseUrl)
  const metrics = new Metrics({ health, engine: engine.name.toLowerCase() })
  metrics.own.counter(
    'plant_store_log_lines_dropped_total',
    'Log lines that nobody read in time.',
    droppedLines,
  )
  const server = await startAdminServer(health, metrics, { host, port }).catch(
    refuseAddress('ADMIN_', { host, port }),
  )
  return {
    metrics,
    address: server.address() as AddressInfo,
    show: (store) => showStore(store, metrics.registry, engine.path?.(databaseUrl)),
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
