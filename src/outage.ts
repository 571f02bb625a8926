// Logs an outage when it begins and when it is over, and failures without a known end now and then.
import type { Logger } from 'pino'

/** The least time between two lines of one outage. */
const windowMs = 10_000

/** Messages of an outage. Without `recovered`, its end is not reported, and `failed` is repeated while failures continue. */
export type OutageWords = { failed: string; recovered?: string }

export type Outage = ReturnType<typeof makeOutage>

/** `now`: milliseconds of a monotonic clock. */
export function makeOutage(
  logger: Logger,
  { failed, recovered }: OutageWords,
  now = () => performance.now(),
) {
  let lastLineMs = -Infinity
  /** Failures since the last line. */
  let unlogged = 0
  /** The current outage. `isLogged`: a line has reported it. */
  let current: { sinceMs: number; failures: number; isLogged: boolean } | undefined

  return {
    /**
     * Notes a failure. `fault`: an error (the first line of an outage has its stack), or a message for the operator.
     * `details` are added to the line, if there is one.
     */
    reportFailure(fault: Error | string, details: object = {}): void {
      const nowMs = now()
      current ??= { sinceMs: nowMs, failures: 0, isLogged: false }
      const { isLogged } = current
      current.failures++
      if (isLogged && recovered !== undefined) return
      unlogged++
      // An outage that recurs within the window is logged only if it lasts beyond the window.
      if (nowMs - lastLineMs < windowMs) return
      const reason = typeof fault === 'string' ? fault : fault.message
      const cause = isLogged || typeof fault === 'string' ? { reason } : { err: fault }
      logger.warn({ ...details, failures: unlogged, ...cause }, failed)
      lastLineMs = nowMs
      unlogged = 0
      current.isLogged = true
    },

    reportRecovery(): void {
      const outage = current
      current = undefined
      if (!outage?.isLogged) return
      const seconds = Math.round((now() - outage.sinceMs) / 100) / 10
      logger.info({ seconds, failures: outage.failures }, recovered)
    },
  }
}
