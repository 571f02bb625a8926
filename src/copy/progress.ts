// How far a copy is: a bar that moves in a terminal, a line every few seconds elsewhere.
const barWidth = 12
const barMs = 100
const lineMs = 5000

export type ProgressStream = { isTTY?: boolean; columns?: number; write(text: string): unknown }

export class CopyProgress {
  readonly #stream: ProgressStream
  readonly #now: () => number
  readonly #startedAt: number
  #shownAt: number

  constructor(stream: ProgressStream, now: () => number = Date.now) {
    this.#stream = stream
    this.#now = now
    this.#startedAt = now()
    this.#shownAt = this.#startedAt
  }

  /** Shows it, unless it has just done so. */
  show(done: number, total: number): void {
    const now = this.#now()
    if (now - this.#shownAt < (this.#stream.isTTY ? barMs : lineMs)) return
    this.#shownAt = now
    const perMs = done / (now - this.#startedAt)
    const part = done / total
    const left = Math.ceil((total - done) / perMs / 1000)
    const words = `${Math.floor(part * 100)} % · ${done} of ${total} plants · ${Math.round(perMs * 1000)} plants/s · ${left} s left`
    this.#stream.write(this.#stream.isTTY ? this.#bar(part, words) : `${words}\n`)
  }

  #bar(part: number, words: string): string {
    const full = Math.floor(part * barWidth)
    const line = `${'█'.repeat(full)}${'░'.repeat(barWidth - full)} ${words}`
    return `\r\x1b[2K${line.slice(0, (this.#stream.columns ?? 80) - 1)}`
  }

  /** Takes the bar away. */
  end(): void {
    if (this.#stream.isTTY) this.#stream.write('\r\x1b[2K')
  }
}
