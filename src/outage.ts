// Logs an outage when it begins and when it ends, and failures without a known end at most every 10 s.
import type { Logger } from 'pino'

/** The least time between two lines of one outage. */
const windowMs = 10_000

/** Messages of an outage. Without `recovered`, its end is not reported, and `failed` is repeated while failures continue. */
type Messages = { failed: string; recovered?: string }

/** `now`: milliseconds of a monotonic clock. */
export function makeOutage(logger: Logger, { failed, recovered }: Messages, now = () => performance.now()) {
  let lastLineMs = -Infinity
  /** When the current outage began, its failures, and whether a line has reported it. */
  let [sinceMs, failures, isLogged] = [0, 0, false]

  return {
    /**
     * Records a failure. `fault`: an error (the first line of an outage has its stack), or a message for the operator.
     * `details` are added to the line, if there is one.
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
      // Without an end, the next line counts the failures after this one.
      if (recovered === undefined) failures = 0
    },

    reportRecovery(): void {
      const seconds = Math.round((now() - sinceMs) / 100) / 10
      if (isLogged) logger.info({ seconds, failures }, recovered)
      failures = 0
      isLogged = false
    },
  }
}

/** Describes why a request failed. Never throws: the network code may throw any value. */
export function describeFailure(error: unknown): string {
  const { message, code, cause, errors } = Object(error)
  // The cause may say more, and an AggregateError has no message.
  const texts = [message || code, Object(cause ?? errors?.[0]).message]
  const words = texts.filter((text) => typeof text === 'string' && text !== '')
  return words.join(': ').slice(0, 500) || 'unknown error'
}
