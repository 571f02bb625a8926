// Long work: it shows its progress on stderr, and a signal ends it within a second.
import { constants } from 'node:os'
import { count, separate } from './console.ts'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** Time for the work to end after a signal. */
const stopMs = 800
const barMs = 100
const lineMs = 5000
const barWidth = 12
const clearLine = '\x1b[1G\x1b[2K'

export type ProgressOptions = {
  quiet?: boolean | undefined
  stream?: NodeJS.WritableStream & { isTTY?: boolean; columns?: number }
  now?: () => number
}

export type Progress = {
  /** Shows how much is done, unless that was shown a moment ago; without a `total`, no bar and no remaining time. */
  show(done: number, total?: number, noun?: string): void
  /** Writes a line that stays, above the bar; also with --quiet. */
  say(line: string): void
  /** Removes the bar. */
  end(): void
}

/**
 * Runs `work`, which ends early when its `signal` is aborted, by SIGINT, SIGTERM or SIGHUP. Then `describe` says what was
 * done and how to go on, and the process ends by that signal.
 */
export async function doLongWork<T>(
  { quiet, describe }: { quiet?: boolean | undefined; describe: () => string },
  work: (progress: Progress, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const progress = startProgress({ quiet })
  const controller = new AbortController()
  const { signal } = controller
  let reason: (typeof signals)[number] = 'SIGINT'
  const stop = (by: (typeof signals)[number]) => {
    if (signal.aborted) return
    reason = by
    setTimeout(end, stopMs)
    controller.abort()
  }
  const end = (): never => {
    progress.end()
    console.error(`plant-store: ${describe()}`)
    for (const name of signals) process.removeAllListeners(name)
    process.kill(process.pid, reason)
    // The first process of a container survives its own signals.
    process.exit(128 + constants.signals[reason])
  }
  for (const name of signals) process.on(name, stop)
  try {
    return await work(progress, signal)
  } catch (error) {
    if (signal.aborted) end()
    throw error
  } finally {
    progress.end()
    for (const name of signals) process.off(name, stop)
  }
}

/** Shows a bar on a terminal, a line every few seconds elsewhere. */
export function startProgress({ quiet, stream = process.stderr, now = Date.now }: ProgressOptions): Progress {
  const isBar = stream.isTTY && process.env.TERM !== 'dumb'
  const startMs = now()
  let shownMs = startMs
  let hasBar = false
  const end = () => {
    if (hasBar) stream.write(clearLine)
    hasBar = false
  }
  return {
    end,
    show(done, total, noun = 'plant') {
      if (quiet || now() - shownMs < (isBar ? barMs : lineMs)) return
      shownMs = now()
      const words = describeProgress(done, total, noun, shownMs - startMs)
      // Cut at the terminal's edge: a line that wraps could not be removed.
      const line = `${total === undefined ? '' : `${drawBar(done, total)} `}${words}`.slice(
        0,
        stream.columns || 80,
      )
      stream.write(isBar ? clearLine + line : `${words}\n`)
      hasBar = isBar === true
    },
    say(line) {
      end()
      stream.write(`${line}\n`)
    },
  }
}

function drawBar(done: number, total: number): string {
  return '█'
    .repeat(Math.min(barWidth, Math.floor((done / Math.max(total, 1)) * barWidth)))
    .padEnd(barWidth, '░')
}

function describeProgress(done: number, total: number | undefined, noun: string, ms: number): string {
  const rate = `${count(Math.round((done / ms) * 1000), noun)}/s`
  if (total === undefined) return `${count(done, noun)} · ${rate}`
  const percent = total === 0 ? 100 : Math.floor((done / total) * 100)
  const seconds = Math.ceil(((total - done) / done) * (ms / 1000))
  const left = seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`
  return `${percent} % · ${separate(done)} of ${count(total, noun)} · ${rate}${done > 0 ? ` · ${left} left` : ''}`
}
