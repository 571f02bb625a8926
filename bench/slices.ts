// Slices of time in which something is measured. One in which others took too much of the machine is rejected and taken
// again, as long as the scenario has time for that: the bench always ends.
import { listProcesses, readMachineUs, type Stat } from './proc.ts'
import { pickOurs } from './processes.ts'

/** The share of a processor that others may take. */
export const maxOthers = 0.25

/** `others`: the share of a processor that processes which are not the bench's took meanwhile. */
export type Slice = { others: number }

export class Slices {
  readonly #scenarioMs: number
  #allMs: number
  #leftMs = 0
  taken = 0
  rejected = 0
  /** How many were rejected, and are used because no quiet one came in time. */
  used = 0

  /** How long the repetitions of one scenario may take together, and of all of them. */
  constructor([scenarioMs, allMs]: [number, number]) {
    this.#scenarioMs = scenarioMs
    this.#allMs = allMs
  }

  /** To be called at the beginning of each scenario. */
  begin(): void {
    this.#leftMs = Math.min(this.#scenarioMs, this.#allMs)
  }

  /** The result of `measure`, of the first quiet slice or else of the quietest. */
  async take<T extends object>(measure: () => Promise<T>): Promise<T & Slice> {
    let best: (T & Slice) | undefined
    for (;;) {
      const start = performance.now()
      const watch = watchOthers()
      const result = await measure()
      const slice = { ...result, others: watch() }
      this.taken++
      if (!best || slice.others < best.others) best = slice
      if (!isDisturbed(slice)) return slice
      this.rejected++
      const ms = performance.now() - start
      this.#allMs -= ms
      this.#leftMs -= ms
      if (this.#leftMs < 0) break
    }
    this.used++
    return best
  }

  /** What to say of all this. */
  describe(): string {
    const share = `${this.rejected} of ${this.taken} slices were rejected: others took more than a quarter of a core.`
    if (this.used === 0) return share
    const loud = this.used * 2 > this.taken - this.rejected + this.used
    const used = `${this.used} of them count all the same, since no quiet one came in time.`
    return `${loud ? 'THE MACHINE WAS TOO BUSY TO BE BELIEVED. ' : ''}${share} ${used}`
  }
}

export function isDisturbed({ others }: Slice): boolean {
  return others > maxOthers
}

/** Those in which others were quiet; all of them when there are none. */
export function quietOnes<T extends Slice>(slices: T[]): T[] {
  const quiet = slices.filter((slice) => !isDisturbed(slice))
  return quiet.length > 0 ? quiet : slices
}

/** Returns what tells the share of a processor that others took since; NaN where the system does not say. */
function watchOthers(): () => number {
  const [start, before] = [performance.now(), readOthersUs()]
  return () => Math.max(0, (readOthersUs() - before) / 1000 / (performance.now() - start))
}

/** Ticks are rounded down for each process: the difference says something, the figure itself does not. */
function readOthersUs(): number {
  const sum = (all: Stat[]) => all.reduce((us, { cpuUs, reapedUs }) => us + cpuUs + reapedUs, 0)
  return readMachineUs() - sum(pickOurs(listProcesses()))
}
