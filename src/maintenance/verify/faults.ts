// Collects the faults found by a check.
import type { Damage, StoreView } from '../../store/engine.ts'
import { StoreUnavailable } from '../../store/errors.ts'

/** Number of faults that are shown. */
const maxNamed = 10

/** Keeps the first faults by position, those of the whole store first, and counts all. */
export class Faults {
  named: readonly Damage[] = []
  count = 0

  add(...faults: Damage[]): void {
    this.count += faults.length
    this.named = [...this.named, ...faults]
      .sort((a, b) => (a.position ?? 0) - (b.position ?? 0))
      .slice(0, maxNamed)
  }

  /** Resolves to what `read` does; undefined, with a fault of `what`, when a part of the database is unreadable. */
  async reading<T>(view: StoreView, what: string, read: () => Promise<T>): Promise<T | undefined> {
    try {
      return await read()
    } catch (error) {
      this.add({ detail: `${what} cannot be read: ${await explainUnread(view, error)}` })
      return undefined
    }
  }
}

/** Resolves to the reason why a part is unreadable; rejects when it is another error, or the whole database is away. */
export async function explainUnread(view: StoreView, error: unknown): Promise<string> {
  if (!(error instanceof StoreUnavailable)) throw error
  await view.probe()
  return error.message
}

/** Formats a fault as a line. */
export function describeFault({ position, detail }: Damage): string {
  return position === undefined ? detail : `plant ${position} ${detail}`
}
