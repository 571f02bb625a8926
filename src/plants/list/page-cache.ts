// Caches the bytes of pages, plain and compressed. Their names stand for them for ever.
import { LRUCache } from 'lru-cache'
import { maxCachedBytes } from '../../limits.ts'
import type { Meter } from '../../runtime/meter.ts'

/** Approximate size of an entry without its bytes and its name. */
const entryBytes = 200

export class PageCache {
  readonly #kept = new LRUCache<string, Buffer>({
    maxSize: maxCachedBytes,
    sizeCalculation: (bytes, name) => bytes.length + name.length + entryBytes,
  })
  #hits = 0
  #misses = 0

  get(name: string): Buffer | undefined {
    const bytes = this.#kept.get(name)
    if (bytes) this.#hits++
    return bytes
  }

  /** Counts a page that has to be read. */
  miss(): void {
    this.#misses++
  }

  has(name: string): boolean {
    return this.#kept.has(name)
  }

  set(name: string, bytes: Buffer): void {
    this.#kept.set(name, bytes)
  }

  show(meter: Meter): void {
    const name = 'plant_store_page_cache'
    meter.counter(`${name}_hits_total`, 'Pages that were in the cache.', () => this.#hits)
    meter.counter(`${name}_misses_total`, 'Pages that were not in the cache.', () => this.#misses)
    meter.gauge(
      `${name}_bytes`,
      'Size of the cached pages and their compressed forms.',
      () => this.#kept.calculatedSize,
    )
  }
}
