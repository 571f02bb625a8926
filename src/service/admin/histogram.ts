// A histogram whose series are looked up once and then counted into: prom-client's own takes a microsecond to find out,
// for each value, which series it belongs to.
import type { Histogram as PromHistogram, Registry } from 'prom-client'

type Labels = Record<string, string | number>
type Sample = { metricName: string; labels: Labels; value: number }

/** The values of one set of labels. */
export class Series {
  readonly #bounds: readonly number[]
  /** Values in each bucket and in no lower one; the last is above all bounds. */
  readonly #counts: number[]
  #sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Array(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    let bucket = 0
    while (value > (this.#bounds[bucket] as number)) bucket++
    ;(this.#counts[bucket] as number)++
    this.#sum += value
  }

  /** Buckets count what is in lower ones, too, as Prometheus wants them. */
  samples(name: string, labels: Labels): Sample[] {
    let count = 0
    const buckets = this.#counts.map((here, bucket): Sample => {
      count += here
      return {
        metricName: `${name}_bucket`,
        labels: { ...labels, le: this.#bounds[bucket] ?? '+Inf' },
        value: count,
      }
    })
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: count },
    ]
  }
}

export type HistogramOptions = {
  name: string
  help: string
  /** Upper bounds, ascending. */
  bounds: readonly number[]
}

export class Histogram {
  readonly name: string
  readonly #help: string
  readonly #bounds: readonly number[]
  readonly #series: { labels: Labels; series: Series }[] = []

  constructor(registry: Registry, { name, help, bounds }: HistogramOptions) {
    this.name = name
    this.#help = help
    this.#bounds = bounds
    // A registry asks no more of a metric than its name and `get`.
    registry.registerMetric(this as unknown as PromHistogram)
  }

  /** A new series; the caller keeps it, and asks once for each set of labels. */
  addSeries(labels: Labels = {}): Series {
    const series = new Series(this.#bounds)
    this.#series.push({ labels, series })
    return series
  }

  async get() {
    const values = this.#series.flatMap(({ labels, series }) => series.samples(this.name, labels))
    return { name: this.name, help: this.#help, type: 'histogram', aggregator: 'sum', values }
  }
}
