// Ends the service on a signal or an uncaught error.
import { echoMs } from '../limits.ts'
import { withTimeout } from '../runtime/with-timeout.ts'

export type Cause = { signal?: NodeJS.Signals; err?: unknown }

type Options = { finish: (cause: Cause) => Promise<void>; limitMs: number }

/**
 * Listens for signals as long as the process lives: without a listener, an echo of the first signal would kill it.
 * Process 1 of a container receives only signals that it listens for.
 */
export class Shutdown {
  readonly #now: () => number
  readonly #hurry = Promise.withResolvers<void>()
  #options: Options | undefined
  #startMs: number | undefined

  /** Until `arm` is called, a signal ends the process at once, as there is nothing to finish. */
  constructor(now = () => performance.now()) {
    this.#now = now
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, this.#hear)
  }

  /** From now on, a signal calls `finish`; the process exits when it resolves, or `limitMs` after the signal. */
  arm(options: Options): void {
    this.#options = options
    process.on('uncaughtException', this.#fail)
  }

  disarm(): void {
    this.#options = undefined
    process.off('uncaughtException', this.#fail)
  }

  /** Resolves after `delayMs`, or upon a second signal. */
  async delay(delayMs: number): Promise<void> {
    await withTimeout(this.#hurry.promise, delayMs, () => {})
  }

  readonly #hear = (signal: NodeJS.Signals) => {
    if (this.#startMs === undefined) void this.#end({ signal })
    else if (this.#now() - this.#startMs > echoMs) this.#hurry.resolve()
  }

  /* c8 ignore next 4: no test can bring about a fault that is not known yet */
  readonly #fail = (err: unknown) => {
    if (this.#startMs === undefined) void this.#end({ err })
    else process.exit(1)
  }

  async #end(cause: Cause): Promise<void> {
    if (!this.#options) process.exit(0)
    const { finish, limitMs } = this.#options
    this.#startMs = this.#now()
    /* c8 ignore next 3: each part of the end has a limit of its own, and no fault of one is known */
    const fail = () => process.exit(1)
    setTimeout(fail, limitMs).unref()
    await finish(cause).catch(fail)
    /* c8 ignore next: the same fault */
    process.exit(cause.err ? 1 : 0)
  }
}
