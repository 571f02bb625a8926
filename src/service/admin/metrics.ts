// Metrics for Prometheus: of the process, and sums over its threads.
import { AggregatorRegistry, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import { build } from '../../runtime/version.ts'
import type { Health } from './health.ts'
import { type Snapshot, ThreadMetrics } from './thread-metrics.ts'

/** Gauges with `_total` in their names, against the rules of Prometheus; the ones without it say more. */
const misnamed = ['handles', 'requests', 'resources'].map((name) => `nodejs_active_${name}_total`)

/** Metrics of the process: of its main thread, with those that it has once, and sums over all of its threads. */
export class Metrics extends ThreadMetrics {
  /** Metrics that Node and the system have of the process. */
  readonly #process = new Registry()
  /** Returns the counts of the other threads. */
  others: () => Promise<Snapshot[]> = async () => []

  /** `engine`: the name of the engine. */
  constructor({ health, engine }: { health: Health; engine: string }) {
    super()
    const registers = [this.#process]
    collectDefaultMetrics({ register: this.#process })
    for (const name of misnamed) this.#process.removeSingleMetric(name)
    const running = { version: build, node: process.version, engine }
    const labelNames = Object.keys(running)
    const help = 'What is running.'
    new Gauge({ name: 'plant_store_build_info', help, labelNames, registers }).set(running, 1)
    const isReady = async () => Number((await health.findFault()) === undefined)
    this.gauge('plant_store_ready', 'Whether /readyz says that requests should come.', isReady)
  }

  /** Formats all metrics as Prometheus's text. */
  async write(): Promise<string> {
    const snapshots = [await this.getMetricsAsJSON(), ...(await this.others())]
    const sums = AggregatorRegistry.aggregate(snapshots)
    return `${await this.#process.metrics()}\n${await sums.metrics()}`
  }
}
