// The bytes of lists. A page is read as a whole, and cached plain and compressed. It is never stale, because its key is
// the entity tag. A longer list is streamed, part by part.
import { pipeline, Readable } from 'node:stream'
import { LRUCache } from 'lru-cache'
import { Plant } from '../../schemas/plant.ts'
import { type Meter, noMeter } from '../metrics.ts'
import type { PlantLog } from '../store/engine.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { inTime } from '../store/in-time.ts'
import { type Coding, compressors, makeCompressor } from './codings.ts'
import { longestItemBytes } from './item.ts'
import type { Range } from './names.ts'

/** Maximum size of a page. With smaller pages a long list takes longer; with larger ones it uses more memory. */
const pageBytes = 256 * 1024
/** Number of plants of maximum size that fit into a page. */
const safePlants = Math.max(1, Math.floor(pageBytes / (longestItemBytes(Plant) + 1)))
/** Maximum number of plants in a read: the next ones may be longer, and a read must not last too long on a slow network. */
const maxPlants = 64 * safePlants
/** Below the limit, because plants differ in size. */
const targetBytes = 0.9 * pageBytes
const maxCacheBytes = 32 * 2 ** 20
/** Compression is useless if a page and its headers fit into one packet. */
const minCompressedBytes = 1024
/** Maximum number of concurrent reads, and of compressions for clients that refuse a plain page. */
const maxReads = 200
/** Maximum number of concurrent compressions for other clients; beyond it, they get a plain page. */
const maxCompressions = 16
/** Maximum number of long lists that are being sent. */
const maxStreams = 100
/** Maximum number of concurrent reads for all long lists: on a slow network, more would exceed their time limit. */
const maxPartReads = 6

type Body = { coding: Coding; bytes: Buffer | Readable }
/** The JSON array of the plants up to position `reached`. */
type Part = { array: Buffer; reached: number }

/** Reads pages and long lists of a log. */
export class Pages {
  readonly #log: PlantLog
  readonly #cache = new LRUCache<string, Buffer>({
    maxSize: maxCacheBytes,
    sizeCalculation: (page, name) => page.length + name.length + 200,
  })
  readonly #reading = new Map<string, Promise<Part>>()
  readonly #compressing = new Map<string, Promise<Buffer>>()
  /** Mean size of an item in the latest read; an assumption before the first read. */
  #meanBytes = 100
  #streams = 0
  #turn: Promise<unknown> = Promise.resolve()
  /** The latest read of each queue for parts of long lists. */
  readonly #queues: Promise<unknown>[] = Array(maxPartReads).fill(Promise.resolve())
  #hits = 0
  #misses = 0

  constructor(log: PlantLog, meter: Meter = noMeter) {
    this.#log = log
    meter.counter('plant_store_page_cache_hits_total', 'Pages found in the cache.', () => this.#hits)
    meter.counter('plant_store_page_cache_misses_total', 'Pages not in the cache.', () => this.#misses)
    meter.gauge('plant_store_page_cache_bytes', 'Size of the cached pages.', () => this.#cache.calculatedSize)
  }

  /**
   * Returns a list in the best of the codings. If it is small, or too many pages are being compressed, it is plain
   * unless the client refuses that. Rejects with StoreUnavailable: `unread`, `overloaded`.
   */
  get(range: Range, codings: readonly Coding[]): Body | Promise<Body> {
    const [best = 'identity'] = codings
    const bytes = this.#cache.get(nameOf(range, best))
    if (bytes === undefined) return this.#make(range, best, codings.includes('identity'))
    this.#hits++
    return { coding: best, bytes }
  }

  async #make(range: Range, best: Coding, allowsPlain: boolean): Promise<Body> {
    // The plain page may be cached although the compressed one is not.
    const cached = this.#cache.get(range.etag)
    if (cached) this.#hits++
    const part = cached ? { array: cached, reached: range.last } : await this.#read(range)
    if (part.reached < range.last) return this.#open(range, part, best)
    const { array } = part
    const prefersPlain = array.length < minCompressedBytes || this.#compressing.size >= maxCompressions
    if (best === 'identity' || (allowsPlain && prefersPlain)) return { coding: 'identity', bytes: array }
    // A copy: zlib returns a part of a buffer of 16 KiB.
    const make = async () => Buffer.from(new Uint8Array(await compressors[best](array)).buffer)
    const bytes = await this.#once(this.#compressing, nameOf(range, best), make)
    this.#cache.set(nameOf(range, best), bytes)
    return { coding: best, bytes }
  }

  /** Reads a page, or the first part of a longer list. */
  async #read(range: Range): Promise<Part> {
    if (range.after === range.last) return { array: Buffer.from('[]'), reached: range.last }
    this.#misses++
    const read = () => this.#readPart(range, range.after)
    const part = await inTime(this.#once(this.#reading, range.etag, read))
    if (part.reached === range.last) this.#cache.set(range.etag, part.array)
    return part
  }

  /** Calls `make`. Concurrent callers with the same name share the result. */
  #once<T>(making: Map<string, Promise<T>>, name: string, make: () => Promise<T>): Promise<T> {
    let pending = making.get(name)
    if (pending) return pending
    if (making.size >= maxReads) throw new StoreUnavailable('overloaded', 'too many lists are being read')
    pending = make().finally(() => making.delete(name))
    making.set(name, pending)
    return pending
  }

  /** Reads as many plants after `after` as fit into a page. If the part is too large, reads again with fewer plants. */
  async #readPart(range: Range, after: number): Promise<Part> {
    let count = Math.min(range.last - after, countFitting(this.#meanBytes), maxPlants)
    for (;;) {
      const reached = after + count
      const mark = reached === range.last ? range.mark : await this.#readMark(reached, range)
      const array = await this.#log.read(after, reached, mark)
      const meanBytes = array.length / count
      if (count >= safePlants) this.#meanBytes = meanBytes
      if (array.length <= pageBytes || count <= safePlants) return { array, reached }
      count = Math.min(count - 1, countFitting(meanBytes))
    }
  }

  /** Reads the mark of a position within a range. Rejects if the log no longer contains the range. */
  async #readMark(position: number, { last, mark }: Range): Promise<string> {
    const head = await this.#log.head([position, last])
    const found = head.markOf(position)
    if (found !== undefined && head.markOf(last) === mark) return found
    throw new StoreUnavailable('unread', `the log no longer contains the plants up to ${last}`)
  }

  /** Opens a stream of a long list, which reads one part ahead. Clients do not share streams. */
  #open(range: Range, first: Part, coding: Coding): Body {
    if (this.#streams >= maxStreams)
      throw new StoreUnavailable('overloaded', 'too many long lists are being sent')
    this.#streams++
    const isGone = () => list.destroyed
    const list = Readable.from(this.#parts(range, first, isGone), { highWaterMark: 1 })
    list.once('close', () => this.#streams--)
    // The pipeline destroys both streams if one of them fails.
    const bytes = coding === 'identity' ? list : pipeline(list, makeCompressor[coding](), () => {})
    return { coding, bytes }
  }

  /** Reads a part after the other reads in its queue. The wait does not count toward the time limit. */
  #queuePart(range: Range, after: number, isGone: () => boolean): Promise<Part> {
    const before = this.#queues.shift()
    const part = (async () => {
      await before
      if (isGone()) throw new StoreUnavailable('unread', 'the client has disconnected')
      // One part per turn of the event loop: Node accepts one connection per turn.
      this.#turn = this.#turn.then(() => new Promise(setImmediate))
      await this.#turn
      return inTime(this.#readPart(range, after))
    })()
    this.#queues.push(Promise.allSettled([part]).then(() => {}))
    return part
  }

  async *#parts(range: Range, first: Part, isGone: () => boolean): AsyncGenerator<Buffer, void> {
    for (let part = first; ; part = await this.#queuePart(range, part.reached, isGone)) {
      const isLast = part.reached === range.last
      // A comma replaces the brackets between two parts.
      if (part !== first) part.array.write(',')
      yield isLast ? part.array : part.array.subarray(0, -1)
      if (isLast) return
    }
  }
}

const nameOf = ({ etag }: Range, coding: Coding) => (coding === 'identity' ? etag : `${etag}.${coding}`)

const countFitting = (meanBytes: number) => Math.max(safePlants, Math.floor(targetBytes / meanBytes))
