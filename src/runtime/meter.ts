// The interface through which parts of the service publish metrics.

/** A number, or one per value of a label. */
export type Counts = number | Readonly<Record<string, number>>

/** Adds a number to a distribution, with the value of its label, if it has one. */
export type Observe = (number: number, value?: string) => void

export type Meter = {
  /** Publishes a number that goes up and down. `read` is called on each scrape; `overall` aggregates the threads. */
  gauge(name: string, help: string, read: () => number, overall?: 'sum' | 'max'): void
  /** Publishes a number that only grows, or several by the values of a label. */
  counter(name: string, help: string, read: () => Counts, label?: string): void
  /** Publishes a distribution, or several by the values of a label. */
  histogram(name: string, help: string, buckets: number[], label?: string, values?: string[]): Observe
}

/** A meter without metrics. */
export const noMeter: Meter = { gauge() {}, counter() {}, histogram: () => () => {} }

/** Buckets of durations in seconds. */
export const secondBounds = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
]
