// Caches the bytes of pages, plain and compressed. Their names stand for them for ever.
import { LRUCache } from 'lru-cache'
import { maxCachedBytes } from '../../limits.ts'
import type { Meter } from '../../runtime/meter.ts'

/** Approximate size of an entry without its bytes and its name. */
const entryBytes = 200

export class PageCache extends LRUCache<string, Buffer> {
  #hits = 0
  #misses = 0

  constructor() {
    super({
      maxSize: maxCachedBytes,
      sizeCalculation: (bytes, name) => bytes.length + name.length + entryBytes,
    })
  }

  /** Returns a page, and counts it, if it is cached. */
  look(name: string): Buffer | undefined {
    const bytes = this.get(name)
    if (bytes) this.#hits++
    return bytes
  }

  /** Counts a page that has to be read. */
  miss(): void {
    this.#misses++
  }

  show(meter: Meter): void {
    const name = 'plant_store_page_cache'
    const size = 'Size of the cached pages and their compressed forms.'
    meter.counter(`${name}_hits_total`, 'Pages that were in the cache.', () => this.#hits)
    meter.counter(`${name}_misses_total`, 'Pages that were not in the cache.', () => this.#misses)
    meter.gauge(`${name}_bytes`, size, () => this.calculatedSize)
  }
}
