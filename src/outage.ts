// Logs the start and the end of an outage. Failures without a known end are logged at most every 10 s.
import type { Logger } from 'pino'

/** Minimum time between two lines with the message `failed`. */
const windowMs = 10_000

/** Messages of an outage. Without `recovered`, its end is not logged, and `failed` is repeated while it lasts. */
type Messages = { failed: string; recovered?: string }

type Log = Pick<Logger, 'info' | 'warn'>

/** `now`: milliseconds of a monotonic clock. */
export function makeOutage(logger: Log, { failed, recovered }: Messages, now = () => performance.now()) {
  let lastLineMs = -Infinity
  /** Start of the current outage, its number of failures, and whether it has been logged. */
  let [sinceMs, failures, isLogged] = [0, 0, false]

  return {
    /**
     * Records a failure. `fault`: an error (the first line of an outage has its stack), or a message for the operator.
     * `details`: fields to add to the log line.
     */
    reportFailure(fault: Error | string, details: object = {}): void {
      const nowMs = now()
      if (failures++ === 0) sinceMs = nowMs
      // An outage that recurs within the window is logged only if it lasts beyond the window.
      if ((isLogged && recovered !== undefined) || nowMs - lastLineMs < windowMs) return
      const reason = typeof fault === 'string' ? fault : fault.message
      const cause = isLogged || typeof fault === 'string' ? { reason } : { err: fault }
      logger.warn({ ...details, failures, ...cause }, failed)
      lastLineMs = nowMs
      isLogged = true
      // The next line counts only the failures after this one.
      if (recovered === undefined) failures = 0
    },

    reportRecovery(): void {
      if (isLogged) logger.info({ seconds: Math.round((now() - sinceMs) / 100) / 10, failures }, recovered)
      failures = 0
      isLogged = false
    },
  }
}

/** Describes the failure of an outgoing request. Never throws: the network code may throw any value. */
export function describeFailure(error: unknown): string {
  const { message, code, cause, errors } = Object(error)
  // The cause may have more detail, and an AggregateError has no message.
  const texts = [message || code, Object(cause ?? errors?.[0]).message]
  const parts = texts.filter((text) => typeof text === 'string' && text !== '')
  // Node quotes an invalid header, which may contain a secret.
  const known = parts.join(': ').replace(/ \[".*"\]/s, '')
  return known.slice(0, 500) || 'unknown error'
}
