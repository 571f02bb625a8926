// How far the bench is, on standard error: a line that changes in a terminal, a line per scenario elsewhere.

export class Progress {
  #title = ''

  begin(scenario: number, scenarios: number, title: string): void {
    this.#title = `[${scenario + 1}/${scenarios}] ${title}`
    if (process.stderr.isTTY) this.step(0, 'start')
    else console.error(this.#title)
  }

  /** `part`: how much of the scenario is done, from 0 to 1. */
  step(part: number, what: string): void {
    if (!process.stderr.isTTY) return
    const line = `${this.#title} · ${Math.round(part * 100)} % · ${what}`
    process.stderr.write(`\r\x1b[2K${line.slice(0, process.stderr.columns - 1)}`)
  }

  /** Takes the line away, so that something else can be written. */
  clear(): void {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[2K')
  }
}
