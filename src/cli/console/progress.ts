// Progress of a long command: a bar on a terminal, a line every few seconds elsewhere, nothing with --quiet.
// It goes to stderr, so that stdout holds results alone.

import { count, separate } from '../../runtime/count.ts'

const barWidth = 12
const barMs = 100
const clearLine = '\x1b[1G\x1b[2K'
const lineMs = 5000
const defaultColumns = 80

export type ProgressStream = NodeJS.WritableStream & { isTTY?: boolean; columns?: number }

export type ProgressOptions = { quiet?: boolean; stream?: ProgressStream; now?: () => number }

/** The unit of progress. */
export type Unit = 'plant' | 'page'

export class Progress {
  readonly #quiet: boolean
  readonly #stream: ProgressStream
  readonly #now: () => number
  readonly #startedAt: number
  #shownAt: number
  #hasBar = false

  constructor({ quiet = false, stream = process.stderr, now = Date.now }: ProgressOptions = {}) {
    this.#quiet = quiet
    this.#stream = stream
    this.#now = now
    this.#startedAt = now()
    this.#shownAt = this.#startedAt
  }

  /** Shows the progress, unless it was shown a moment ago; without a `total`, neither a bar nor the remaining time. */
  show(done: number, total: number | undefined, unit: Unit): void {
    const now = this.#now()
    if (this.#quiet) return
    const bar = isTerminal(this.#stream)
    if (now - this.#shownAt < (bar ? barMs : lineMs)) return
    this.#shownAt = now
    const words = describe(done, total, unit, now - this.#startedAt)
    if (bar) this.#draw(total === undefined ? words : `${drawBar(done, total)} ${words}`)
    else this.#stream.write(`${words}\n`)
  }

  /** Writes a line that stays, above the bar if there is one; also with --quiet. */
  say(line: string): void {
    this.end()
    this.#stream.write(`${line}\n`)
  }

  /** Removes the bar. */
  end(): void {
    if (!this.#hasBar) return
    this.#stream.write(clearLine)
    this.#hasBar = false
    // The next progress is drawn at once.
    this.#shownAt = Number.NEGATIVE_INFINITY
  }

  /** Cuts the line at the terminal's edge: one that wraps could not be removed. */
  #draw(line: string): void {
    this.#stream.write(clearLine + line.slice(0, this.#stream.columns || defaultColumns))
    this.#hasBar = true
  }
}

function isTerminal(stream: ProgressStream): boolean {
  return stream.isTTY === true && process.env.TERM !== 'dumb'
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
