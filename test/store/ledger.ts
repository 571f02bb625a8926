// The ledger of a fault test: what writers sent and which responses they got, to compare with the log.
import { EventEmitter, once } from 'node:events'
import { token } from '../support/service.ts'

export class Ledger extends EventEmitter {
  /** Names of plants. Acknowledged ones must be in the log, refused ones ("Nothing was added") must not. */
  readonly acknowledged = new Set<string>()
  readonly refused = new Set<string>()
  /** The number of responses with an unknown outcome, and of requests without a response. */
  unknown = 0
  cut = 0
  longestMs = 0

  /** Records that the service acknowledged a plant. */
  acknowledge(name: string): void {
    this.acknowledged.add(name)
    this.emit('acknowledged')
  }

  /** Resolves when `count` more plants are acknowledged. */
  async more(count: number): Promise<void> {
    const goal = this.acknowledged.size + count
    while (this.acknowledged.size < goal) await once(this, 'acknowledged')
  }

  /** The faults of a log with these names, in words. Names are unique. */
  findFaults(names: string[]): string[] {
    const held = new Set<string>()
    const twice = names.filter((name) => held.size === held.add(name).size)
    const lost = [...this.acknowledged].filter((name) => !held.has(name))
    const risen = [...this.refused].filter((name) => held.has(name))
    return [
      ...twice.map((name) => `${name} is in the log twice`),
      ...lost.map((name) => `${name} was acknowledged, but is lost`),
      ...risen.map((name) => `${name} was refused, but is in the log`),
    ]
  }
}

export type Plant = { name: string; tag: string; id?: number }

/** Posts a plant, and records the outcome; resolves to true if it was acknowledged. */
export async function post(ledger: Ledger, url: string, plant: Plant): Promise<boolean> {
  const start = performance.now()
  try {
    const response = await fetch(`${url}/plants`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(plant),
    })
    const text = await response.text()
    if (response.status === 200) ledger.acknowledge(plant.name)
    else if (response.status !== 503 || !response.headers.has('retry-after'))
      throw new Error(`unexpected answer ${response.status}: ${text}`)
    else if (/Nothing was added/.test(text)) ledger.refused.add(plant.name)
    else ledger.unknown++
    return response.status === 200
  } catch (error) {
    // fetch rejects with TypeError if the connection fails.
    if (!(error instanceof TypeError)) throw error
    ledger.cut++
    return false
  } finally {
    ledger.longestMs = Math.max(ledger.longestMs, performance.now() - start)
  }
}

/** Requests a list: resolves to its names, and the path of the next page. */
export async function list(url: string) {
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
  const next = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
  return { names: ((await response.json()) as Plant[]).map(({ name }) => name), next }
}

/** Reads the log page by page while it grows. */
export class Reader {
  /** The names before the current page, and those on it so far. */
  #before: string[] = []
  #page: string[] = []
  #path: string

  /** `limit`: of each page. */
  constructor(limit = 500) {
    this.#path = `/plants?limit=${limit}`
  }

  get names(): string[] {
    return [...this.#before, ...this.#page]
  }

  /** Reads to the end of the log. Throws if a name seen before has changed, or an acknowledged plant is missing. */
  async readOn(url: string, ledger: Ledger): Promise<void> {
    for (;;) {
      const due = ledger.acknowledged.size
      const { names, next } = await list(url + this.#path)
      const changed = this.#page.findIndex((name, index) => name !== names[index])
      if (changed !== -1) throw new Inconsistent(`${this.#page[changed]} became ${names[changed]}`)
      this.#page = names
      const listed = this.#before.length + names.length
      if (next === undefined && listed < due)
        throw new Inconsistent(`${due} plants were acknowledged, ${listed} listed`)
      if (next === undefined) return
      this.#before.push(...names)
      this.#page = []
      this.#path = next
    }
  }
}

/** A reader saw an inconsistent list. */
export class Inconsistent extends Error {}
