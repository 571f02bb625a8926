// Reads and caches pages. The plants at given positions in a given epoch never change, and neither does their JSON: a
// page is cached under its name, and can never be stale.
import type { Readable } from 'node:stream'
import { LRUCache } from 'lru-cache'
import { maxCachedBytes, maxWaitingReads, pageBytes, pagePlants, readConnections } from '../../limits.ts'
import { FairPool } from '../../runtime/fair-pool.ts'
import type { Meter } from '../../runtime/meter.ts'
import type { Epochs } from '../../store/epochs.ts'
import { type PlantLog, StoreUnavailable } from '../../store/store.ts'
import { itemFormat } from '../item.ts'
import { streamList } from './list-stream.ts'
import { type Part, PartReader, type Range } from './parts.ts'

/** A range of the log with a name that stands for its bytes, for ever and on every replica. */
export type Page = Range & { name: string }

/** A request that reads a page: its owner, and a function that reserves room for the bytes, or throws. */
export type PageReader = { owner: string; reserve: (bytes: number) => void }

const emptyList = Buffer.from('[]')
const comma = Buffer.from(',')
/** The queue for reads of a token. */
export const line = {
  most: maxWaitingReads,
  refuse: () => new StoreUnavailable('overloaded', 'too much waits to be read already'),
}

/** The page after `after` up to `last`, as the epoch that owns `last` has it. */
export function pageOf(after: number, last: number, epochs: Epochs): Page {
  return { name: `${epochs.owner(last)}.${itemFormat}.${after}-${last}`, after, last, epochs }
}

/** Approximate size of an entry without its bytes and its name. */
const entryBytes = 200

/** The bytes of pages, plain and compressed, by name. */
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

export class Pages {
  readonly #parts: PartReader
  readonly #cache: PageCache
  /** Pages being read, shared by requests for the same page. */
  readonly #reading = new Map<string, Promise<Buffer | Part>>()

  /** Used once the store is known to read asynchronously. */
  readonly #reads = new FairPool({ slots: readConnections, line })

  constructor(log: PlantLog, cache = new PageCache()) {
    this.#parts = new PartReader(log)
    this.#cache = cache
  }

  /** True when `read` returns at once. */
  has(page: Page): boolean {
    return page.after === page.last || this.#cache.has(page.name)
  }

  /** Returns the JSON array of a page: synchronously when it is cached, as a stream when it is large. */
  read(page: Page, reader: PageReader): Buffer | Promise<Buffer | Readable> {
    if (page.after === page.last) return emptyList
    const cached = this.#cache.look(page.name)
    if (cached) return cached
    this.#cache.miss()
    return this.#open(page, this.#reading.get(page.name) ?? this.#begin(page, reader))
  }

  async #open(page: Page, reading: Promise<Buffer | Part>): Promise<Buffer | Readable> {
    const begun = await reading
    return 'array' in begun ? streamList(this.#parts, page, begun) : begun
  }

  /** Begins to read a page. Only the first request reserves room; the others share its bytes. */
  #begin(page: Page, { owner, reserve }: PageReader): Promise<Buffer | Part> {
    reserve(pageBytes)
    const read = () => this.#readBeginning(page)
    const begun = (this.#parts.takesTime ? this.#reads.run(owner, read) : read()).finally(() =>
      this.#reading.delete(page.name),
    )
    this.#reading.set(page.name, begun)
    return begun
  }

  /** Reads the whole page when it is small, otherwise its beginning. */
  async #readBeginning(page: Page): Promise<Buffer | Part> {
    let part = await this.#parts.read(page, page.after)
    while (part.reached < page.last && seemsSmall(part, page)) {
      const more = await this.#parts.read(page, part.reached, part.meanBytes)
      part = { ...more, array: joinArrays(part.array, more.array) }
    }
    if (part.reached < page.last || part.array.length > pageBytes) return part
    this.#cache.set(page.name, part.array)
    return part.array
  }
}

/** True when a page is no larger than a part, if its rest is like its beginning. */
function seemsSmall({ array, reached }: Part, { after, last }: Page): boolean {
  const count = last - after
  return count <= pagePlants && (array.length / (reached - after)) * count <= pageBytes
}

/** Joins two JSON arrays that are not empty. */
function joinArrays(one: Buffer, other: Buffer): Buffer {
  return Buffer.concat([one.subarray(0, -1), comma, other.subarray(1)])
}
