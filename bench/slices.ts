// Slices of time in which something is measured. One in which others took too much of the machine is rejected and taken
// again, as long as the scenario has time for that: the bench always ends.
import { readOthersUs } from './processes.ts'

/** The share of a processor that others may take. */
const maxOthers = 0.25

/** `others`: the share of a processor that processes which are not the bench's took meanwhile. */
export type Slice = { others: number }

export class Slices {
  /** `used`: how many were rejected, and are used because no quiet one came in time. */
  readonly counts = { taken: 0, rejected: 0, used: 0 }
  #allMs: number
  #leftMs = 0

  /** `allMs`: how long the repetitions of all scenarios may take together. */
  constructor(allMs: number) {
    this.#allMs = allMs
  }

  /** Begins a scenario, whose repetitions may take so long together. */
  begin(scenarioMs: number): void {
    this.#leftMs = Math.min(scenarioMs, this.#allMs)
  }

  /** The result of `measure`, of the first quiet slice or else of the quietest. */
  async take<T extends object>(measure: () => Promise<T>): Promise<T & Slice> {
    let best: (T & Slice) | undefined
    do {
      const [start, before] = [performance.now(), readOthersUs()]
      const result = await measure()
      const ms = performance.now() - start
      // Ticks are rounded down for each process, so the difference may be negative.
      const slice = { ...result, others: Math.max(0, (readOthersUs() - before) / 1000 / ms) }
      this.counts.taken++
      if (!isDisturbed(slice)) return slice
      if (!best || slice.others < best.others) best = slice
      this.counts.rejected++
      this.#allMs -= ms
      this.#leftMs -= ms
    } while (this.#leftMs >= 0)
    this.counts.used++
    return best
  }

  /** A note for the report, which is loud when most slices were disturbed. */
  describe(): string {
    const { taken, rejected, used } = this.counts
    const share = `${rejected} of ${taken} slices were rejected: others took more than a quarter of a core.`
    if (used === 0) return share
    const loud = used * 2 > taken - rejected + used ? 'THE MACHINE WAS TOO BUSY TO BE BELIEVED. ' : ''
    return `${loud}${share} ${used} of them count all the same, since no quiet one came in time.`
  }
}

/** False where the system does not say what others took. */
export function isDisturbed({ others }: Slice): boolean {
  return others > maxOthers
}

/** Those in which others were quiet; all of them when there are none. */
export function quietOnes<T extends Slice>(slices: T[]): T[] {
  const quiet = slices.filter((slice) => !isDisturbed(slice))
  return quiet.length > 0 ? quiet : slices
}
