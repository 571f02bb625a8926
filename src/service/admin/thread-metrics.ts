// Metrics of one thread: of its requests, and what its parts publish.
import { Counter, Gauge, Histogram, type MetricObject, Registry } from 'prom-client'
import type { Exchange } from '../../http/connection/exchange.ts'
import { type Counts, type Meter, type Observe, secondBounds } from '../../runtime/meter.ts'
import { knownMethods } from '../methods.ts'

/** The counts of one thread, in a form that can be posted to another. */
export type Snapshot = MetricObject[]

/** What a scrape reads; undefined: nothing is published. */
type Read = () => Counts | undefined | Promise<Counts | undefined>

/** Reasons of refused requests by the code of their problem. */
const reasons: Record<string, string> = {
  'rate-limited': 'rate',
  'auth-limited': 'auth',
  overloaded: 'overload',
  unauthorized: 'auth',
  forbidden: 'auth',
}

export class ThreadMetrics extends Registry implements Meter {
  readonly #durations = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time from the head of a request to the end of its answer.',
    labelNames: ['method', 'route', 'status'],
    buckets: secondBounds,
    registers: [this],
  })
  readonly #refused = Object.fromEntries(Object.values(reasons).map((reason) => [reason, 0]))

  constructor() {
    super()
    const help = 'Requests that were refused for their rate, an overload, or their token.'
    this.counter('plant_store_refused_total', help, () => this.#refused, 'reason')
  }

  gauge(name: string, help: string, read: Read, aggregator: 'sum' | 'max' = 'sum', label = ''): void {
    new Gauge({ name, help, aggregator, registers: [this], ...readInto(read, label) })
  }

  counter(name: string, help: string, read: Read, label = ''): void {
    new Counter({ name, help, registers: [this], ...readInto(read, label) })
  }

  histogram(name: string, help: string, buckets: number[], label = '', values: string[] = []): Observe {
    const labelNames = label ? [label] : []
    const histogram = new Histogram({ name, help, buckets, labelNames, registers: [this] })
    for (const value of values) histogram.zero({ [label]: value })
    return (number, value) => histogram.observe(value ? { [label]: value } : {}, number)
  }

  /** Counts a request. Those without a route, or of an odd method, share a label, so that a scan adds no series. */
  readonly count = ({ method, route = 'other', status, durationMs, problem }: Exchange): void => {
    const labels = { method: knownMethods.has(method) ? method : 'other', route, status }
    this.#durations.observe(labels, durationMs / 1000)
    const reason = problem && reasons[problem]
    if (reason) this.#refused[reason] = Number(this.#refused[reason]) + 1
  }
}

/** The options of a metric that is read on each scrape. */
function readInto(read: Read, label: string) {
  return {
    labelNames: label ? [label] : [],
    async collect(this: Counter | Gauge) {
      const counts = await read()
      this.reset()
      if (typeof counts === 'number') this.inc(counts)
      else if (counts) for (const value in counts) this.inc({ [label]: value }, counts[value])
      else if (!label) this.remove()
    },
  }
}
