// Connections that end without an answer of the API, or are cut: one line each, and no flood of lines for a flood of them.
import type { Socket } from 'node:net'
import type { Logger } from 'pino'

/** So many lines are written in so many milliseconds; then one that says how many were left out. */
const maxLines = 20
const windowMs = 10_000

/** `reason`: why it ended, in a word or as the parser's code; `status`: what was answered, if anything. */
export type ConnectionEnd = {
  reason: string
  status?: number
  requestId?: string | undefined
  [name: string]: unknown
}

export class ConnectionLog {
  readonly #logger: Logger
  #lines = 0
  #leftOut = 0
  #window: NodeJS.Timeout | undefined

  constructor(logger: Logger) {
    this.#logger = logger
  }

  add({ remoteAddress, remotePort }: Socket, end: ConnectionEnd): void {
    this.#window ??= setTimeout(() => this.close(), windowMs).unref()
    if (this.#lines >= maxLines) {
      this.#leftOut++
      return
    }
    this.#lines++
    this.#logger.info({ ...end, remoteAddress, remotePort }, 'connection')
  }

  /** One that never sent a byte: load balancers look in that way whether a port is open. */
  addUnused({ remoteAddress, remotePort }: Socket): void {
    this.#logger.debug({ reason: 'unused', remoteAddress, remotePort }, 'connection')
  }

  /** Ends the present window, and says what was left out in it. */
  close(): void {
    clearTimeout(this.#window)
    this.#window = undefined
    this.#lines = 0
    if (this.#leftOut > 0)
      this.#logger.info({ leftOut: this.#leftOut }, 'connections were left out of the log')
    this.#leftOut = 0
  }
}
