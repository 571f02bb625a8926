// Long work: shows its progress, and can be interrupted. The first SIGINT, SIGTERM or SIGHUP asks it to stop. A second
// one ends it at once, as does a time-out when it has not stopped by itself.
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { echoMs, interruptMs, stopMs } from '../../limits.ts'
import { type ProgressLines, startProgress } from './progress.ts'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
type Signal = (typeof signals)[number]

/** The command was asked to stop, and has said how to go on. */
export class Interrupted extends Error {
  /** 129, 130 or 143. */
  readonly exitCode: number

  constructor(by: Signal) {
    super('interrupted')
    this.exitCode = 128 + constants.signals[by]
  }
}

/**
 * Rejects with Interrupted when the work was interrupted, whatever the work itself threw; `describe` says then what was
 * done and how to go on.
 */
export async function doLongWork<T>(
  { quiet, describe }: { quiet?: boolean | undefined; describe: () => string },
  work: (progress: ProgressLines, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const progress = startProgress({ quiet })
  const controller = new AbortController()
  const { signal } = controller
  let isTold = false
  const tell = () => {
    progress.end()
    if (!isTold) console.error(`plant-store: ${describe()}`)
    isTold = true
  }
  const endNow = (by: Signal) => {
    tell()
    replaceProcess(by)
  }
  // Lines that a slow reader has not taken are still in this process. One that takes none holds it up no longer than this.
  const endOnceRead = (by: Signal) => {
    tell()
    setTimeout(replaceProcess, stopMs, by).unref()
    process.stderr.write('', () => process.stdout.write('', () => replaceProcess(by)))
  }
  let askedMs = 0
  const ask = (by: Signal) => {
    if (!signal.aborted) {
      askedMs = performance.now()
      setTimeout(endOnceRead, interruptMs, by).unref()
      controller.abort(new Interrupted(by))
    } else if (performance.now() - askedMs > echoMs) endNow(by)
  }
  for (const name of signals) process.on(name, ask)
  try {
    return await work(progress, signal)
  } catch (error) {
    if (!signal.aborted) throw error
    tell()
    throw signal.reason
    /* c8 ignore next: an interrupted process reports no coverage */
  } finally {
    progress.end()
    // An echo of the signal may follow, and would end the process before it has reported.
    if (!signal.aborted) for (const name of signals) process.off(name, ask)
  }
}

/**
 * Ends the process at once. An exit would wait for threads that are in a system call or in SQLite, so this replaces
 * the process by a program that exits or, where that is not possible, sends the signal again.
 */
function replaceProcess(by: Signal): void {
  const shell = '/bin/sh'
  if (process.execve && existsSync(shell))
    process.execve(shell, [shell, '-c', `exit ${new Interrupted(by).exitCode}`], {})
  /* c8 ignore next 2: coverage is counted on Linux, where the process is another by now */
  process.removeAllListeners(by)
  process.kill(process.pid, by)
}
