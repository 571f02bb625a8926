// Long work: it shows its progress on stderr, and a signal ends it.
import { constants } from 'node:os'
import { printable } from '../log-text.ts'
import { count, separate } from './console.ts'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const clearLine = '\x1b[1G\x1b[2K'

type Terminal = NodeJS.WritableStream & { isTTY?: boolean; columns?: number; writableNeedDrain?: boolean }

export type Progress = ReturnType<typeof startProgress>

/**
 * Runs `work`. SIGINT, SIGTERM or SIGHUP aborts its `signal`, on which it must remove its files at once; then the process
 * prints `advice`, which says how to continue, and ends by that signal.
 */
export async function doLongWork<T>(
  { quiet, advice }: { quiet?: boolean | undefined; advice: string },
  work: (progress: Progress, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const progress = startProgress(quiet)
  const controller = new AbortController()
  const stop = (by: (typeof signals)[number]): never => {
    controller.abort()
    progress.end()
    console.error(`plant-store: ${advice}`)
    for (const name of signals) process.removeAllListeners(name)
    process.kill(process.pid, by)
    // Process 1 of a container ignores a signal that it sends to itself.
    process.exit(128 + constants.signals[by])
  }
  for (const name of signals) process.on(name, stop)
  try {
    return await work(progress, controller.signal)
  } finally {
    progress.end()
    for (const name of signals) process.off(name, stop)
  }
}

/** Shows progress: one changing line on a terminal, a new line every few seconds elsewhere. */
export function startProgress(quiet?: boolean, stream: Terminal = process.stderr, now = Date.now) {
  const isTerminal = stream.isTTY && process.env.TERM !== 'dumb'
  const startMs = now()
  let [shownMs, isShown] = [startMs, false]
  /** Removes the line of progress from a terminal. */
  const end = () => {
    if (isShown) stream.write(clearLine)
    isShown = false
  }
  return {
    end,
    /** Shows how much is done, at most every 100 ms on a terminal and every 5 s elsewhere. */
    show(done: number, total?: number, noun = 'plant'): void {
      if (quiet || now() - shownMs < (isTerminal ? 100 : 5000)) return
      shownMs = now()
      const rate = `${count(Math.round((done / (shownMs - startMs)) * 1000), noun)}/s`
      const part = total === undefined ? '' : `${Math.floor((done / Math.max(total, 1)) * 100)} % · `
      const all = total === undefined ? count(done, noun) : `${separate(done)} of ${count(total, noun)}`
      const line = `${part}${all} · ${rate}`
      // Cut at the terminal's edge: a line that wraps could not be removed.
      stream.write(isTerminal ? clearLine + line.slice(0, stream.columns || 80) : `${line}\n`)
      isShown = isTerminal === true
    },
    /** Resolves once a pipe has accepted what was written. */
    async written(): Promise<void> {
      // After an error there is no `drain`.
      if (stream.writableNeedDrain) await new Promise<unknown>((resolve) => stream.write('', resolve))
    },
    /** Writes a line that stays, also with --quiet. */
    say(line: string): void {
      end()
      stream.write(`${printable(line)}\n`)
    },
  }
}
