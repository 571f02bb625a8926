// Connections that end without an answer of the API, or are cut: one line each, and no flood of lines for a flood of them.
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import { logWindowMs, maxConnectionLines } from '../limits.ts'
import { Throttle } from './throttle.ts'

/** `reason`: why it ended, in a word or as the parser's code; `status`: what was answered, if anything. */
export type ConnectionEnd = {
  reason: string
  status?: number
  requestId?: string | undefined
  [name: string]: unknown
}

export class ConnectionLog {
  readonly #logger: Logger
  readonly #throttle = new Throttle({ most: maxConnectionLines })
  #telling: NodeJS.Timeout | undefined

  constructor(logger: Logger) {
    this.#logger = logger
  }

  add({ remoteAddress, remotePort }: Socket, end: ConnectionEnd): void {
    if (this.#throttle.take()) this.#logger.info({ ...end, remoteAddress, remotePort }, 'connection')
    else this.#telling ??= setTimeout(() => this.close(), logWindowMs).unref()
  }

  /** A connection that never sent a byte: load balancers check in that way whether a port is open. */
  addUnused({ remoteAddress, remotePort }: Socket): void {
    this.#logger.debug({ reason: 'unused', remoteAddress, remotePort }, 'connection')
  }

  /** Says at once how many lines were left out. */
  close(): void {
    const { leftOut } = this.#throttle
    if (leftOut > 0) this.#logger.info({ leftOut }, 'connections were left out of the log')
    this.#throttle.leftOut = 0
    clearTimeout(this.#telling)
    this.#telling = undefined
  }
}
