// The interface through which parts of the service publish metrics.

/** A number, or one per value of a label. */
export type Counts = number | Readonly<Record<string, number>>

export type Meter = {
  /** Publishes a number that goes up and down. `read` is called on each scrape; `overall` aggregates the threads. */
  gauge(name: string, help: string, read: () => number, overall?: 'sum' | 'max'): void
  /** Publishes a number that only grows, or several by the values of a label. */
  counter(name: string, help: string, read: () => Counts, label?: string): void
}

/** A meter without metrics. */
export const noMeter: Meter = { gauge() {}, counter() {} }
