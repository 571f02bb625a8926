// How far the bench is, on standard error: a bar that moves in a terminal, a line a scenario elsewhere.
const width = 24

export class Progress {
  #scenario = 0
  #scenarios = 1
  #title = ''
  #shown = false

  begin(scenario: number, scenarios: number, title: string): void {
    this.#scenario = scenario
    this.#scenarios = scenarios
    this.#title = title
    if (process.stderr.isTTY) this.step(0, 'start')
    else console.error(`[${scenario + 1}/${scenarios}] ${title}`)
  }

  /** `part`: how much of the scenario is done, from 0 to 1. */
  step(part: number, what: string): void {
    if (!process.stderr.isTTY) return
    const done = Math.round((width * (this.#scenario + part)) / this.#scenarios)
    const bar = '█'.repeat(done) + '░'.repeat(width - done)
    const line = `${bar} ${this.#title} · ${what}`
    process.stderr.write(`\r\x1b[2K${line.slice(0, (process.stderr.columns ?? 80) - 1)}`)
    this.#shown = true
  }

  note(text: string): void {
    this.clear()
    console.error(text)
  }

  /** Takes the bar away, so that something else can be written. */
  clear(): void {
    if (this.#shown) process.stderr.write('\r\x1b[2K')
    this.#shown = false
  }
}
