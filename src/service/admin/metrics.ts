// Metrics for Prometheus: of the process, and sums over its threads.
import { AggregatorRegistry, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import { build } from '../../runtime/version.ts'
import type { Health } from './health.ts'
import { type Snapshot, ThreadMetrics } from './thread-metrics.ts'

/** Gauges with `_total` in their names, against the rules of Prometheus; the ones without it say more. */
const misnamed = ['handles', 'requests', 'resources'].map((name) => `nodejs_active_${name}_total`)

export class Metrics {
  /** Metrics that Node and the system have of the process. */
  readonly #registry = new Registry()
  /** Metrics of this thread, and those that the process has once. */
  readonly own = new ThreadMetrics()
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE
  /** Returns the counts of the other threads. */
  others: () => Promise<Snapshot[]> = async () => []

  /** `engine`: the name of the engine. */
  constructor({ health, engine }: { health: Health; engine: string }) {
    const registers = [this.#registry]
    collectDefaultMetrics({ register: this.#registry })
    for (const name of misnamed) this.#registry.removeSingleMetric(name)
    const running = { version: build, node: process.version, engine }
    const labelNames = Object.keys(running)
    const help = 'What is running.'
    new Gauge({ name: 'plant_store_build_info', help, labelNames, registers }).set(running, 1)
    const isReady = async () => Number((await health.findFault()) === undefined)
    this.own.gauge('plant_store_ready', 'Whether /readyz says that requests should come.', isReady)
  }

  /** Formats all metrics as Prometheus's text. */
  async write(): Promise<string> {
    const snapshots = [await this.own.getMetricsAsJSON(), ...(await this.others())]
    const sums = AggregatorRegistry.aggregate(snapshots)
    return `${await this.#registry.metrics()}\n${await sums.metrics()}`
  }
}
