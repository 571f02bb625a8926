// Stores that are opened in the test itself, and what they are seen to hold.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Entry } from '../../src/store/engine.ts'
import type { Store } from '../support/stores.ts'

/** Plants with these names and no id. */
export function entries(...names: string[]): Entry[] {
  return names.map((name) => ({ item: JSON.stringify(name), id: undefined }))
}

/** The names in the whole log. */
export async function namesIn({ log }: Store): Promise<string[]> {
  const { position, mark } = await log.head()
  return JSON.parse(String(await log.read(0, position, mark)))
}

/** What `work` resolves to, as soon as it does: while servers change, a store may say that it cannot. */
export async function eventually<T>(work: () => Promise<T> | T, limitMs = 20_000): Promise<T> {
  for (const end = performance.now() + limitMs; ; await sleep(50)) {
    try {
      return await work()
    } catch (error) {
      if (performance.now() > end) throw error
    }
  }
}

/** Records what was ever seen under the name of a position: its number and its mark. */
export class Sightings {
  readonly #seen = new Map<string, string>()
  /** What is wrong, in words. */
  readonly faults: string[] = []

  /** Looks at each position of a store's log, as a page that ends there is named. Resolves to the mark of each. */
  async look({ log }: Store): Promise<string[]> {
    const { position, mark } = await log.head()
    const names: string[] = JSON.parse(String(await log.read(0, position, mark)))
    const head = await log.head(names.map((_, index) => index + 1))
    return names.map((_, index) => {
      const found = String(head.markOf(index + 1))
      const name = `${index + 1} of ${found}`
      const text = names.slice(0, index + 1).join()
      const known = this.#seen.get(name) ?? text
      this.#seen.set(name, text)
      if (known !== text) this.faults.push(`${name} was ${known} and became ${text}`)
      return found
    })
  }
}
