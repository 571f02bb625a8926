// How far a long command is: a bar on a terminal, a line every few seconds elsewhere, nothing with --quiet.
// It goes to stderr, so that stdout holds results alone.
import { SingleBar } from 'cli-progress'

const barWidth = 12
const barMs = 100
const lineMs = 5000

export type ProgressStream = NodeJS.WritableStream & { isTTY?: boolean; columns?: number }

export type ProgressOptions = { quiet?: boolean; stream?: ProgressStream; now?: () => number }

/** What is counted. Bytes are shown as MB. */
export type Unit = 'plants' | 'bytes' | 'pages'

export class Progress {
  readonly #quiet: boolean
  readonly #stream: ProgressStream
  readonly #now: () => number
  readonly #startedAt: number
  #lineAt: number
  #bar: SingleBar | undefined
  #words = ''

  constructor({ quiet = false, stream = process.stderr, now = Date.now }: ProgressOptions = {}) {
    this.#quiet = quiet
    this.#stream = stream
    this.#now = now
    this.#startedAt = now()
    this.#lineAt = this.#startedAt
  }

  /** Shows it, unless it has just done so. Without a `total` there is neither a bar nor a time left. */
  show(done: number, total: number | undefined, unit: Unit, more = ''): void {
    const now = this.#now()
    if (this.#quiet || now - this.#startedAt < barMs) return
    this.#words = describe(done, total, unit, now - this.#startedAt) + (more && ` · ${more}`)
    if (isTerminal(this.#stream)) this.#draw(done, total)
    else if (now - this.#lineAt >= lineMs) {
      this.#lineAt = now
      this.#stream.write(`${this.#words}\n`)
    }
  }

  /** Writes a line that stays, above the bar if there is one; also with --quiet. */
  say(line: string): void {
    this.end()
    this.#stream.write(`${line}\n`)
  }

  /** Takes the bar away. */
  end(): void {
    this.#bar?.stop()
    this.#bar = undefined
  }

  #draw(done: number, total: number | undefined): void {
    this.#bar ??= this.#startBar(done, total)
    this.#bar.setTotal(total ?? 0)
    this.#bar.update(done)
  }

  #startBar(done: number, total: number | undefined): SingleBar {
    const format = (_: unknown, { progress }: { progress: number }) =>
      total === undefined ? this.#words : `${drawBar(progress)} ${this.#words}`
    // With `linewrap` the library cuts the line at the terminal's edge; without it, by control characters.
    const bar = new SingleBar({ stream: this.#stream, format, clearOnComplete: true, linewrap: true })
    bar.start(total ?? 0, done)
    return bar
  }
}

function isTerminal(stream: ProgressStream): boolean {
  return stream.isTTY === true && process.env.TERM !== 'dumb'
}

function drawBar(part: number): string {
  const full = Math.floor(part * barWidth)
  return '█'.repeat(full) + '░'.repeat(barWidth - full)
}

function describe(done: number, total: number | undefined, unit: Unit, ms: number): string {
  const perMs = done / ms
  const rate = `${count(perMs * 1000, unit)}/s`
  if (total === undefined) return `${count(done, unit)} · ${rate}`
  const percent = total === 0 ? 100 : Math.floor((done / total) * 100)
  const [made, all] = [count(done, unit).split(' ')[0], count(total, unit)]
  const left = done > 0 ? ` · ${formatSeconds((total - done) / perMs / 1000)} left` : ''
  return `${percent} % · ${made} of ${all} · ${rate}${left}`
}

function count(number: number, unit: Unit): string {
  if (unit === 'bytes') return `${(number / 1e6).toFixed(1)} MB`
  return `${Math.round(number).toLocaleString('en-US')} ${unit}`
}

function formatSeconds(seconds: number): string {
  const whole = Math.ceil(seconds)
  return whole < 120 ? `${whole} s` : `${Math.ceil(whole / 60)} min`
}
