// Counts one thread's requests, connections and store operations.
import { Counter, Gauge, Histogram, type MetricObject, Registry } from 'prom-client'
import type { Exchange } from '../../http/connection/exchange.ts'
import type { Counts, Meter } from '../../runtime/meter.ts'

/** The counts of one thread, in a form that can be posted to another. */
export type Snapshot = MetricObject[]

/** Buckets of request and commit durations. */
export const secondBounds = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
]

/** Reasons of refused requests by the code of their problem. */
const reasons: Record<string, string> = {
  'rate-limited': 'rate',
  'auth-limited': 'auth',
  overloaded: 'overload',
  unauthorized: 'auth',
  forbidden: 'auth',
}

export class ThreadMetrics implements Meter {
  readonly registry = new Registry()
  readonly #durations: Histogram
  readonly #refused: Counter
  readonly #reconnects: Counter

  constructor() {
    const registers = [this.registry]
    this.#durations = new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the head of a request to the end of its answer.',
      labelNames: ['method', 'route', 'status'],
      buckets: secondBounds,
      registers,
    })
    this.#refused = new Counter({
      name: 'plant_store_refused_total',
      help: 'Requests that were refused for their rate, an overload, or their token.',
      labelNames: ['reason'],
      registers,
    })
    for (const reason of Object.values(reasons)) this.#refused.inc({ reason }, 0)
    this.#reconnects = new Counter({
      name: 'plant_store_database_reconnects_total',
      help: 'Connections to the database that were made anew.',
      registers,
    })
  }

  gauge(
    name: string,
    help: string,
    read: () => number | Promise<number>,
    aggregator: 'sum' | 'max' = 'sum',
  ): void {
    new Gauge({
      name,
      help,
      aggregator,
      registers: [this.registry],
      async collect() {
        this.set(await read())
      },
    })
  }

  counter(name: string, help: string, read: () => Counts, label = ''): void {
    new Counter({
      name,
      help,
      labelNames: label ? [label] : [],
      registers: [this.registry],
      collect() {
        this.reset()
        const counts = read()
        if (typeof counts === 'number') this.inc(counts)
        else for (const [value, count] of Object.entries(counts)) this.inc({ [label]: value }, count)
      },
    })
  }

  /** Returns the counts so far. */
  async takeSnapshot(): Promise<Snapshot> {
    return await this.registry.getMetricsAsJSON()
  }

  /** Counts a request. Those without a route share a label, so that a scan adds no series. */
  readonly count = ({ method, route = 'other', status, durationMs, problem }: Exchange): void => {
    this.#durations.observe({ method, route, status }, durationMs / 1000)
    const reason = problem && reasons[problem]
    if (reason) this.#refused.inc({ reason })
  }

  readonly countReconnect = (): void => {
    this.#reconnects.inc()
  }
}
