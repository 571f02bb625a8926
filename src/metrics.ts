// Metrics for Prometheus. The service publishes them through a `Meter`; only the admin server loads prom-client.
import type { Counter, Gauge } from 'prom-client'
import { type ProblemCode, problemCodes } from '../schemas/problems.ts'
import type { Count } from './plugins/access-log.ts'
import { build } from './version.ts'

/** A number, or one per value of a label; undefined if there is nothing to publish. */
type Counts = number | Readonly<Record<string, number>> | undefined

/** Called on each scrape. */
type Read = () => Counts | Promise<Counts>

/** Adds an observation to a histogram, with its outcome if the histogram has outcomes. */
type Observe = (number: number, outcome?: string) => void

export type Meter = {
  /** Publishes a gauge. */
  gauge(name: string, help: string, read: Read): void
  /** Publishes a counter, or one per value of a label. */
  counter(name: string, help: string, read: Read, label?: string): void
  /** Publishes a histogram, or one per outcome. */
  histogram(name: string, help: string, buckets: number[], outcomes?: string[]): Observe
}

/** A meter without metrics. */
export const noMeter: Meter = { gauge() {}, counter() {}, histogram: () => () => {} }

/** Buckets of durations in seconds. */
export const secondBounds = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
]

/** Methods that have their own label value. All others share one, so that scanners add no time series. */
const methods = ['GET', 'HEAD', 'POST', 'OPTIONS']

/** Gauges of prom-client that violate the naming rules of Prometheus; the metrics without `_total` have more detail. */
const misnamed = ['handles', 'requests', 'resources'].map((name) => `nodejs_active_${name}_total`)

/** Creates the registry of the process. `engine`: name of the store's engine. */
export async function openMetrics(engine: string) {
  const { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } = await import('prom-client')
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  for (const name of misnamed) registry.removeSingleMetric(name)

  const meter: Meter = {
    gauge: (name, help, read) => void new Gauge({ name, help, registers, ...readBy(read) }),
    counter: (name, help, read, label) => void new Counter({ name, help, registers, ...readBy(read, label) }),
    histogram(name, help, buckets, outcomes = []) {
      const labelNames = outcomes.length > 0 ? ['outcome'] : []
      const histogram = new Histogram({ name, help, buckets, registers, labelNames })
      for (const outcome of outcomes) histogram.zero({ outcome })
      return (number, outcome) => histogram.observe(outcome === undefined ? {} : { outcome }, number)
    },
  }

  const running = { version: build, node: process.version, engine }
  const info = { name: 'plant_store_build_info', help: 'Build metadata.', labelNames: Object.keys(running) }
  new Gauge({ ...info, registers }).set(running, 1)
  const durations = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the headers of a request to the end of its response.',
    labelNames: ['method', 'route', 'status'],
    buckets: secondBounds,
    registers,
  })
  const problems = Object.fromEntries(problemCodes.map((code) => [code, 0])) as Record<ProblemCode, number>
  meter.counter('plant_store_problems_total', 'Error responses by problem.', () => problems, 'problem')

  /** Counts an error response. */
  const countProblem = (code: ProblemCode) => void problems[code]++

  /** Counts a request that has ended. */
  const count: Count = ({ method, routeOptions }, { problem }, { status, durationMs }) => {
    const known = methods.includes(method) ? method : 'other'
    durations.observe({ method: known, route: routeOptions.url ?? 'other', status }, durationMs / 1000)
    // Status 499: the client disconnected before it received the response.
    if (problem && status !== 499) countProblem(problem)
  }
  return { meter, registry, countProblem, count }
}

/** Returns the options of a metric that is read on each scrape. */
function readBy(read: Read, label = '') {
  return {
    labelNames: label ? [label] : [],
    async collect(this: Counter | Gauge) {
      const counts = await read()
      this.reset()
      if (typeof counts === 'number') this.inc(counts)
      // Publishes nothing: `reset` has set a metric without labels to 0.
      else if (!label) this.remove()
      else for (const [value, number] of Object.entries(counts ?? {})) this.inc({ [label]: value }, number)
    },
  }
}
