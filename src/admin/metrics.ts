// What Prometheus can ask for: the durations of requests, the length of the log, the process.
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Access } from '../http/exchange.ts'
import type { PlantLog } from '../store/store.ts'

export class Metrics {
  readonly registry = new Registry()
  readonly #durations: Histogram<'method' | 'route' | 'status'>

  constructor(log: PlantLog) {
    collectDefaultMetrics({ register: this.registry })
    this.#durations = new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the head of a request to the end of its answer.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers: [this.registry],
    })
    new Gauge({
      name: 'plants_total',
      help: 'How many plants are in the log.',
      registers: [this.registry],
      async collect() {
        this.set((await log.head()).position)
      },
    })
  }

  /** `route`: the one that was matched; all requests without one are counted together, so that a scan makes no series. */
  readonly count = ({ method, route = 'other', status, durationMs }: Access): void => {
    this.#durations.observe({ method, route, status: String(status) }, durationMs / 1000)
  }
}
