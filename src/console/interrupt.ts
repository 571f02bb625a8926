// The first SIGINT or SIGTERM asks a long command to stop after the batch under way; the second ends it at once.
import { constants } from 'node:os'

const signals = ['SIGINT', 'SIGTERM'] as const
type Signal = (typeof signals)[number]

/**
 * How long the same key press can take to arrive twice: a terminal sends SIGINT to the launcher in bin/, too, and that
 * one passes it on.
 */
const echoMs = 500

/** The command was asked to stop, and has done so. The message says how to go on; the exit code is 130 or 143. */
export class Interrupted extends Error {
  readonly by: Signal

  constructor(by: Signal, message = 'interrupted') {
    super(message)
    this.by = by
  }

  get exitCode(): number {
    return 128 + constants.signals[this.by]
  }

  /** The same with a message that says what was done and how to go on. */
  saying(message: string): Interrupted {
    return new Interrupted(this.by, message)
  }
}

/** `signal` aborts with the reason `Interrupted`; `release` lets signals end the process again, as without it. */
export type Interrupt = { signal: AbortSignal; release(): void }

export function onInterrupt(): Interrupt {
  const controller = new AbortController()
  let askedAt = 0
  const ask = (by: Signal) => {
    if (!controller.signal.aborted) {
      askedAt = performance.now()
      controller.abort(new Interrupted(by))
    } else if (performance.now() - askedAt > echoMs) process.exit(new Interrupted(by).exitCode)
  }
  for (const name of signals) process.on(name, ask)
  return {
    signal: controller.signal,
    release() {
      for (const name of signals) process.off(name, ask)
    },
  }
}
