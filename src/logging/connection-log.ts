// Logs connections that are cut or end without an answer of the API: one line each, throttled.
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import { logWindowMs, maxConnectionLines } from '../limits.ts'
import { Throttle } from './throttle.ts'

/** `reason`: a word, or the parser's code; the others, such as the `status` of an answer, are logged as they are. */
export type ConnectionEnd = { reason: string; [name: string]: unknown }

export class ConnectionLog {
  readonly #logger: Logger
  readonly #throttle = new Throttle(maxConnectionLines)
  #telling: NodeJS.Timeout | undefined

  constructor(logger: Logger) {
    this.#logger = logger
  }

  add({ remoteAddress, remotePort }: Socket, end: ConnectionEnd): void {
    if (this.#throttle.take()) this.#logger.info({ ...end, remoteAddress, remotePort }, 'connection')
    else this.#telling ??= setTimeout(() => this.close(), logWindowMs).unref()
  }

  /** Logs, for debugging, a connection that sent nothing: load balancers check ports in this way. */
  addUnused({ remoteAddress, remotePort }: Socket): void {
    this.#logger.debug({ reason: 'unused', remoteAddress, remotePort }, 'connection')
  }

  /** Reports the number of omitted lines now. */
  close(): void {
    const { leftOut } = this.#throttle
    if (leftOut > 0) this.#logger.info({ leftOut }, 'connections were left out of the log')
    this.#throttle.leftOut = 0
    clearTimeout(this.#telling)
    this.#telling = undefined
  }
}
