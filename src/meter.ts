// What the parts of the service show of themselves, as far as they know of it: names and numbers.

export type Meter = {
  /** Shows a number that goes up and down; `read` is asked whenever somebody looks. */
  gauge(name: string, help: string, read: () => number): void
  /** Shows a number that only grows. */
  counter(name: string, help: string, read: () => number): void
}

/** For an app that nobody watches. */
export const noMeter: Meter = { gauge() {}, counter() {} }
