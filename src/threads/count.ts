// How many threads serve requests.
import type { Logger } from 'pino'

/** Where the system spreads connections over several listeners on one port (nodejs.org/api/net.html#serverlistenoptions-callback). */
const spreading = ['linux', 'freebsd', 'sunos', 'aix']

/** As many as are asked for, or one where the system cannot spread connections over them. */
export function countThreads(threads: number, logger: Logger, platform: string = process.platform): number {
  if (threads === 1 || spreading.includes(platform)) return threads
  logger.warn(
    `THREADS ${threads}: this system cannot share a port between threads, so one thread serves all requests`,
  )
  return 1
}
