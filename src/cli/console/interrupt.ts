// The first SIGINT, SIGTERM or SIGHUP asks a long command to stop. A second one ends it at once, as does a time-out
// when it has not stopped by itself.
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { echoMs, interruptMs } from '../../limits.ts'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
type Signal = (typeof signals)[number]

/** The command was asked to stop. The message says how to go on; the exit code is 129, 130 or 143. */
export class Interrupted extends Error {
  readonly by: Signal
  readonly #describe: () => string
  #isTold = false

  constructor(by: Signal, describe: () => string) {
    super('interrupted')
    this.by = by
    this.#describe = describe
  }

  get exitCode(): number {
    return 128 + constants.signals[this.by]
  }

  /** Says so on stderr, once. */
  tell(): void {
    if (!this.#isTold) console.error(`plant-store: ${this.#describe()}`)
    this.#isTold = true
  }
}

/** `signal` aborts with the reason `Interrupted`; `release` ends the handling of signals, unless one has arrived. */
export type Interrupt = { signal: AbortSignal; release(): void }

/** `describe` says, when the command has stopped, what was done and how to go on. */
export function onInterrupt(describe: () => string): Interrupt {
  const controller = new AbortController()
  let askedAt = 0
  const ask = (by: Signal) => {
    if (!controller.signal.aborted) {
      askedAt = performance.now()
      const reason = new Interrupted(by, describe)
      setTimeout(end, interruptMs, reason).unref()
      controller.abort(reason)
    } else if (performance.now() - askedAt > echoMs) end(new Interrupted(by, describe))
  }
  for (const name of signals) process.on(name, ask)
  return {
    signal: controller.signal,
    release() {
      // An echo of the signal may follow, and would end the process before it has reported.
      if (!controller.signal.aborted) for (const name of signals) process.off(name, ask)
    },
  }
}

/**
 * Ends the process at once. An exit would wait for threads that are in a system call or in SQLite, so this replaces
 * the process by a program that exits or, where that is not possible, sends the signal again.
 */
function end(reason: Interrupted): void {
  reason.tell()
  const code = reason.exitCode
  const [program, ...args] = existsSync('/bin/sh')
    ? ['/bin/sh', '-c', `exit ${code}`]
    : /* c8 ignore next: coverage is counted where there is a shell */
      [process.execPath, '--eval', `process.exit(${code})`]
  if (process.execve && process.platform !== 'win32') process.execve(program, [program, ...args], {})
  /* c8 ignore next 2: coverage is counted on Linux, where the process is another by now */
  process.removeAllListeners(reason.by)
  process.kill(process.pid, reason.by)
}
