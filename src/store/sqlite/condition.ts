// Something that works or does not. Its log says a fault once, not once per request, and once that it is over.
import type { Logger } from 'pino'

export class Condition {
  readonly #logger: Logger
  readonly #over: string
  #fault: string | undefined

  /** `over`: what is said when it works again. */
  constructor(logger: Logger, over: string) {
    this.#logger = logger
    this.#over = over
  }

  fails(fault: string, details: object = {}): void {
    if (fault === this.#fault) return
    this.#fault = fault
    this.#logger.error(details, fault)
  }

  holds(): void {
    if (this.#fault === undefined) return
    this.#fault = undefined
    this.#logger.info(this.#over)
  }
}
