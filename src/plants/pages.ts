// The bytes of lists. Plants at given positions never change, so neither does their JSON: a page is cached under
// nothing but its positions, and can never be stale.
import { Readable } from 'node:stream'
import { LRUCache } from 'lru-cache'
import type { PlantLog } from '../store/store.ts'

/** Up to this many plants are one page, read at once and cached; longer lists are streamed. */
export const pagePlants = 1000

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
    const page = frame('[', await this.#log.read(after, last - after), ']')
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
    return Readable.from(this.#chunks(after, last), { objectMode: false, highWaterMark: 1 })
  }

  async *#chunks(after: number, last: number): AsyncGenerator<Buffer> {
    for (let from = after; from < last; from += pagePlants) {
      const to = Math.min(from + pagePlants, last)
      const items = await this.#log.read(from, to - from)
      yield frame(from === after ? '[' : ',', items, to === last ? ']' : '')
      await new Promise(setImmediate)
    }
  }
}

function frame(before: string, items: Uint8Array, after: string): Buffer {
  const framed = Buffer.allocUnsafe(before.length + items.length + after.length)
  framed.write(before, 0, 'latin1')
  framed.set(items, before.length)
  framed.write(after, before.length + items.length, 'latin1')
  return framed
}
