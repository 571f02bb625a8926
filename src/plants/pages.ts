// The bytes of lists. Plants at given positions never change, so neither does their JSON: a page is cached under
// nothing but its positions, and can never be stale.
import { Readable } from 'node:stream'
import { LRUCache } from 'lru-cache'
import type { PlantLog } from '../store/store.ts'

/** Up to this many plants are one page, read at once and cached; longer lists are streamed. */
export const pagePlants = 2000

const maxCachedBytes = 32 * 2 ** 20

export class Pages {
  readonly #log: PlantLog
  readonly #cache = new LRUCache<string, Buffer>({
    maxSize: maxCachedBytes,
    sizeCalculation: (bytes, key) => bytes.length + key.length + 100,
  })

  constructor(log: PlantLog) {
    this.#log = log
  }

  /** The JSON array of the plants after `after` up to `last`, at most a page of them. `key` names just those two. */
  async page(key: string, after: number, last: number): Promise<Buffer> {
    const page = Buffer.from(`[${await this.#log.read(after, last - after)}]`)
    this.#cache.set(key, page)
    return page
  }

  /** The page, when it is cached. */
  cached(key: string): Buffer | undefined {
    return this.#cache.get(key)
  }

  /**
   * The same array for any number of plants, in constant memory: a page is read when the client has taken the one
   * before, with a turn of the event loop in between.
   */
  stream(after: number, last: number): Readable {
    return Readable.from(this.#parts(after, last), { highWaterMark: 1 })
  }

  async *#parts(after: number, last: number): AsyncGenerator<string> {
    let next = this.#readAhead(after, last)
    for (let from = after; from < last; from += pagePlants) {
      const items = await next
      next = this.#readAhead(from + pagePlants, last)
      yield from === after ? '[' : ','
      yield items
      await new Promise(setImmediate)
    }
    yield ']'
  }

  /** Starts to read a part while the one before is on its way; a fault shows when it is waited for, if ever. */
  #readAhead(from: number, last: number): string | Promise<string> {
    const items = from < last ? this.#log.read(from, Math.min(pagePlants, last - from)) : ''
    if (items instanceof Promise) items.catch(() => {})
    return items
  }
}
