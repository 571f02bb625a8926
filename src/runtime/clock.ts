// The clock that deadlines, rates and ages count on.

/** Milliseconds on a monotonic clock that all threads share; `performance.now()` starts anew in each. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + nanoseconds / 1e6
}
