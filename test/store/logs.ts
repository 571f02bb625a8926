// Retries while the servers of a store change, and comparisons of what was read before and after.
import { setTimeout as sleep } from 'node:timers/promises'
import { steps } from '../../src/store/sql/schema.ts'
import type { Store } from '../support/stores.ts'

/** The tables of a store in PostgreSQL, as SQL. */
export const ours = `${steps[0]?.postgres}; INSERT INTO meta VALUES ('step', '1'), ('store', 'x')`

/** Repeats `work` until it succeeds, since a store may be unavailable while servers change. */
export async function eventually<T>(work: () => Promise<T> | T, limitMs = 20_000): Promise<T> {
  for (const end = performance.now() + limitMs; ; await sleep(50)) {
    try {
      return await work()
    } catch (error) {
      if (performance.now() > end) throw error
    }
  }
}

/** Records the plants seen under each name of a list (the number and mark of its last position). */
export class Sightings {
  readonly #seen = new Map<string, string>()
  /** Names under which different plants were seen. */
  readonly faults: string[] = []

  /** Looks at the list up to each position of a log. Resolves to the marks of the positions. */
  async look({ log }: Store): Promise<string[]> {
    const { position, mark } = await log.head()
    const plants: object[] = JSON.parse(String(await log.read(0, position, mark)))
    const head = await log.head(plants.map((_, index) => index + 1))
    return plants.map((_, index) => {
      const found = String(head.markOf(index + 1))
      const name = `${index + 1} of ${found}`
      const text = JSON.stringify(plants.slice(0, index + 1))
      const known = this.#seen.get(name) ?? text
      this.#seen.set(name, text)
      if (known !== text) this.faults.push(`${name} was ${known} and became ${text}`)
      return found
    })
  }
}
