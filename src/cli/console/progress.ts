// Progress of a long command: a bar on a terminal, a line every few seconds elsewhere, nothing with --quiet.
// It goes to stderr, so that stdout holds results alone.

import { count, separate } from '../../runtime/count.ts'

const barWidth = 12
const barMs = 100
const clearLine = '\x1b[1G\x1b[2K'
const lineMs = 5000
const defaultColumns = 80

export type ProgressStream = NodeJS.WritableStream & { isTTY?: boolean; columns?: number }

export type ProgressOptions = { quiet?: boolean | undefined; stream?: ProgressStream; now?: () => number }

/** The unit of progress. */
export type Unit = 'plant' | 'page'

export type ProgressLines = ReturnType<typeof startProgress>

export function startProgress({ quiet, stream = process.stderr, now = Date.now }: ProgressOptions) {
  const isBar = stream.isTTY && process.env.TERM !== 'dumb'
  const startedAt = now()
  let shownAt = startedAt
  let hasBar = false

  /** Removes the bar. */
  const end = () => {
    if (!hasBar) return
    stream.write(clearLine)
    hasBar = false
    // The next progress is drawn at once.
    shownAt = Number.NEGATIVE_INFINITY
  }

  return {
    end,

    /** Shows the progress, unless it was shown a moment ago; without a `total`, neither a bar nor the remaining time. */
    show(done: number, total: number | undefined, unit: Unit = 'plant'): void {
      if (quiet || now() - shownAt < (isBar ? barMs : lineMs)) return
      shownAt = now()
      const words = describe(done, total, unit, shownAt - startedAt)
      if (!isBar) stream.write(`${words}\n`)
      else {
        const line = total === undefined ? words : `${drawBar(done, total)} ${words}`
        // Cut at the terminal's edge: a line that wraps could not be removed.
        stream.write(clearLine + line.slice(0, stream.columns || defaultColumns))
        hasBar = true
      }
    },

    /** Writes a line that stays, above the bar if there is one; also with --quiet. */
    say(line: string): void {
      end()
      stream.write(`${line}\n`)
    },
  }
}

function drawBar(done: number, total: number): string {
  const full = Math.min(barWidth, Math.floor((done / Math.max(total, 1)) * barWidth))
  return '█'.repeat(full) + '░'.repeat(barWidth - full)
}

function describe(done: number, total: number | undefined, unit: Unit, ms: number): string {
  const perMs = done / ms
  const rate = `${count(Math.round(perMs * 1000), unit)}/s`
  if (total === undefined) return `${count(done, unit)} · ${rate}`
  const percent = total === 0 ? 100 : Math.floor((done / total) * 100)
  const left = done > 0 ? ` · ${formatSeconds((total - done) / perMs / 1000)} left` : ''
  return `${percent} % · ${separate(done)} of ${count(total, unit)} · ${rate}${left}`
}

function formatSeconds(seconds: number): string {
  const whole = Math.ceil(seconds)
  return whole < 120 ? `${whole} s` : `${Math.ceil(whole / 60)} min`
}
