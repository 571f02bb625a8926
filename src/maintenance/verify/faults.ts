// Collects the faults found by a check.

/** `position`: of the plant with the fault; absent for a fault of the whole store. */
export type Fault = { position?: number; detail: string }

/** Number of faults that are shown. */
const maxNamed = 10

/** Keeps the first faults by position, those of the whole store first, and counts all. */
export class Faults {
  named: readonly Fault[] = []
  count = 0

  add(...faults: Fault[]): void {
    this.count += faults.length
    this.named = [...this.named, ...faults]
      .sort((a, b) => (a.position ?? 0) - (b.position ?? 0))
      .slice(0, maxNamed)
  }
}

/** Formats a fault as a line. */
export function describeFault({ position, detail }: Fault): string {
  return position === undefined ? detail : `plant ${position} ${detail}`
}
