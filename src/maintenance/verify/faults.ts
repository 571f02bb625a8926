// Faults found by a check.

/** `position`: of the plant that has the fault; absent when it is of the whole store. */
export type Fault = { position?: number; detail: string }

/** Number of faults that are named. */
const maxNamed = 10

/** Keeps the first faults, by position, those of the whole store before all others, and counts the rest. */
export class Faults {
  #named: Fault[] = []
  #count = 0

  add(...faults: Fault[]): void {
    this.#count += faults.length
    this.#named = [...this.#named, ...faults]
      .sort((a, b) => (a.position ?? 0) - (b.position ?? 0))
      .slice(0, maxNamed)
  }

  get named(): readonly Fault[] {
    return this.#named
  }

  get count(): number {
    return this.#count
  }
}

/** A fault as a line. */
export function describeFault({ position, detail }: Fault): string {
  return position === undefined ? detail : `plant ${position} ${detail}`
}
