// The monotonic clock for deadlines, rates and ages.

/** Milliseconds of a clock that all threads share; `performance.now()` starts at 0 in each. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / 1e6
}
