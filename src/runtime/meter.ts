// The interface through which parts of the service publish metrics.

/** A number, or one for each value of a label. */
export type Counts = number | Readonly<Record<string, number>>

export type Meter = {
  /**
   * Shows a number that goes up and down; `read` is asked whenever somebody looks. `overall`: what is shown of the numbers
   * of several threads, by default their sum.
   */
  gauge(name: string, help: string, read: () => number, overall?: 'sum' | 'max'): void
  /** Shows a number that only grows; or several, by the values of a label. */
  counter(name: string, help: string, read: () => Counts, label?: string): void
}

/** For an app that nobody watches. */
export const noMeter: Meter = { gauge() {}, counter() {} }
