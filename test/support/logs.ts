// Stores that are opened in the test itself, and what they are seen to hold.
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import type { Test } from 'tap'
import type { Entry } from '../../src/store/engine.ts'
import { openStore, type Store } from './stores.ts'
import { patienceMs } from './until.ts'

/** Opens the store at a URL, however long its server takes on a busy machine; it closes when the test ends. */
export async function openLog(t: Test, url: string, logger = pino({ level: 'silent' })): Promise<Store> {
  const store = await openStore(url, { logger, patienceMs })
  t.teardown(() => store.close())
  return store
}

/** Plants with these names and no id. */
export function entries(...names: string[]): Entry[] {
  return names.map((name) => ({ item: JSON.stringify(name), id: undefined }))
}

/** The names in the whole log. */
export async function namesIn({ log }: Store): Promise<string[]> {
  const { position, epochs } = await log.head()
  return JSON.parse(String(await log.read(0, position, epochs.owner(position))))
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

/** Holds all that was ever seen under the name of a position: its epoch and its number. */
export class Sightings {
  readonly #seen = new Map<string, string>()
  /** What is wrong, in words. */
  readonly faults: string[] = []

  /** Looks at every position of a store's log, as a page that ends there is named. Resolves to the owner of each. */
  async look(store: Store): Promise<string[]> {
    const { position, epochs } = await store.log.head()
    const names = JSON.parse(String(await store.log.read(0, position, epochs.owner(position))))
    return names.map((_: string, index: number) => {
      const name = `${epochs.owner(index + 1)}.${index + 1}`
      const text = names.slice(0, index + 1).join()
      const known = this.#seen.get(name) ?? text
      this.#seen.set(name, text)
      if (known !== text) this.faults.push(`${name} was ${known} and became ${text}`)
      return epochs.owner(index + 1)
    })
  }
}
