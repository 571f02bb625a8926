// The cache of pages: plain and compressed, by the names of their ranges, so none can be stale. It decides who reads a
// page and who compresses it, and when: each is done once for all that ask meanwhile.
import type { Readable } from 'node:stream'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { problems } from '../../../../schemas/problems.ts'
import type { Coding, Codings } from '../../../http/codings.ts'
import { ProblemError } from '../../../http/problem-error.ts'
import {
  codecBytes,
  listShare,
  maxCachedBytes,
  maxCodedLists,
  maxPreparedPages,
  maxWaitingPages,
  pageBytes,
  pagePlants,
  pageShare,
} from '../../../limits.ts'
import type { FairPool } from '../../../runtime/fair-pool.ts'
import { type Meter, noMeter } from '../../../runtime/meter.ts'
import type { LogRange, Part, RangeReader } from '../range.ts'
import { Codec, type Compression, compressList, compressPage } from './codec.ts'

/** The bytes of a range in a coding: a page, or what opens the stream of a longer list. */
export type ListBody = { coding: Coding; list: Buffer | (() => Readable) }

/** A request: whose turn it takes, and what reserves a share of the bytes in flight for it, or throws. */
export type Caller = { owner: string; hold: (bytes: number, share: number) => void }

/** `jobs`: bounds compression, as the thread pool also writes the log and resolves names. */
export type PagesOptions = { jobs: FairPool; logger: Logger; meter?: Meter }

/** A page that was read, and whose turn its compression takes. */
type PlainPage = { range: LogRange; bytes: Buffer; owner: string }

const emptyList = Buffer.from('[]')
/** Approximate size of an entry without its bytes and its name. */
const entryBytes = 200
/** A page that fits into one packet with its head arrives no sooner when compressed. */
const fewestBytes = 1024

export class Pages {
  readonly #ranges: RangeReader
  readonly #jobs: FairPool
  readonly #logger: Logger
  readonly #kept = new LRUCache<string, Buffer>({
    maxSize: maxCachedBytes,
    sizeCalculation: (bytes, name) => bytes.length + name.length + entryBytes,
  })
  /** Lists being begun, and pages being compressed, by name. */
  readonly #reading = new Map<string, Promise<Buffer | Part>>()
  readonly #compressing = new Map<string, Promise<Buffer>>()
  /** Number of long lists being compressed. */
  #codedLists = 0
  #hits = 0
  #misses = 0

  constructor(ranges: RangeReader, { jobs, logger, meter = noMeter }: PagesOptions) {
    this.#ranges = ranges
    this.#jobs = jobs
    this.#logger = logger
    const name = 'plant_store_page_cache'
    const size = 'Size of the cached pages and their compressed forms.'
    meter.counter(`${name}_hits_total`, 'Pages that were in the cache.', () => this.#hits)
    meter.counter(`${name}_misses_total`, 'Pages that were not in the cache.', () => this.#misses)
    meter.gauge(`${name}_bytes`, size, () => this.#kept.calculatedSize)
  }

  /** Predicts the coding in which a list would be sent now, before it is read. */
  predict(range: LogRange, codings: Codings): Coding {
    const [best] = codings
    if (best === 'identity' || range.last - range.after > pagePlants || !codings.includes('identity'))
      return best
    return this.#kept.has(nameOf(range, best)) ? best : 'identity'
  }

  /** Returns a page that is cached: compressed, or else plain if the client accepts that. */
  findCached(range: LogRange, codings: Codings, owner: string): ListBody | undefined {
    const [best] = codings
    const coded = best === 'identity' ? undefined : this.#look(nameOf(range, best))
    if (coded) return { coding: best, list: coded }
    const bytes = codings.includes('identity') ? this.#findPlain(range) : undefined
    return bytes && this.#asPlain({ range, bytes, owner }, best)
  }

  /**
   * Reads a list. It comes plain if it is not compressed yet or if many others are, unless the client refuses that.
   * Rejects with the error of the log or of `hold`, and with `overloaded`.
   */
  async read(range: LogRange, codings: Codings, caller: Caller): Promise<ListBody> {
    const { owner, hold } = caller
    const [best] = codings
    const bytes = this.#findPlain(range) ?? (await this.#begin(range, caller))
    if (!Buffer.isBuffer(bytes)) return this.#open(range, bytes, { codings, owner, hold })
    const page = { range, bytes, owner }
    if (best === 'identity' || codings.includes('identity')) return this.#asPlain(page, best)
    hold(bytes.length, pageShare)
    return { coding: best, list: await this.#compress(page, best) }
  }

  #findPlain(range: LogRange): Buffer | undefined {
    return range.after === range.last ? emptyList : this.#look(range.name)
  }

  /** Returns bytes, and counts a hit, if they are cached. */
  #look(name: string): Buffer | undefined {
    const bytes = this.#kept.get(name)
    if (bytes) this.#hits++
    return bytes
  }

  /** Begins to read a list. Only the first request reserves room; the others share its bytes. */
  #begin(range: LogRange, { owner, hold }: Caller): Promise<Buffer | Part> {
    this.#misses++
    return this.#once(this.#reading, range.name, () => {
      hold(pageBytes, pageShare)
      return this.#ranges.begin(range, owner)
    })
  }

  /** Makes a long list ready to be streamed. Each is compressed for its own client, if not too many others are. */
  #open(range: LogRange, first: Part, { codings, owner, hold }: Caller & { codings: Codings }): ListBody {
    const isBusy = this.#codedLists >= maxCodedLists
    const coding = isBusy && codings.includes('identity') ? 'identity' : codings[0]
    // One part being sent, and one ahead.
    hold(2 * pageBytes + (coding === 'identity' ? 0 : codecBytes), listShare)
    const openPlain = () => this.#ranges.stream(range, first)
    if (coding === 'identity') return { coding, list: openPlain }
    const list = () => {
      this.#codedLists++
      const codec = new Codec(coding, range.last - range.after)
      const stream = compressList(openPlain(), { codec, jobs: this.#jobs, owner })
      return stream.once('close', () => this.#codedLists--)
    }
    return { coding, list }
  }

  /** The plain page, which is compressed for later requests if it is large enough and few others are being compressed. */
  #asPlain(page: PlainPage, best: Coding): ListBody {
    const { range, bytes, owner } = page
    if (best !== 'identity' && bytes.length >= fewestBytes && !this.#compressing.has(nameOf(range, best))) {
      const isBusy = this.#compressing.size >= maxPreparedPages || this.#isFull(owner)
      const tell = (err: Error) => this.#logger.warn({ err }, 'a page was not compressed')
      if (!isBusy) this.#compress(page, best).catch(tell)
    }
    return { coding: 'identity', list: bytes }
  }

  /** True when too many pages of an owner wait to be compressed, those of clients that have left included. */
  #isFull(owner: string): boolean {
    return this.#jobs.waiting(owner) >= maxWaitingPages
  }

  /** Compresses a page in the thread pool. Rejects with `overloaded` when too many of its owner wait already. */
  #compress({ range, bytes, owner }: PlainPage, coding: Compression): Promise<Buffer> {
    return this.#once(this.#compressing, nameOf(range, coding), () => {
      if (this.#isFull(owner)) throw new ProblemError(problems.tooManyCodings)
      return this.#jobs.run(owner, () => compressPage(bytes, coding, range.last - range.after))
    })
  }

  /** Makes something once for all that ask meanwhile, and keeps it if it is a page. */
  async #once<T extends Buffer | Part>(
    making: Map<string, Promise<T>>,
    name: string,
    make: () => Promise<T>,
  ): Promise<T> {
    let coming = making.get(name)
    if (coming) return coming
    coming = make()
    making.set(name, coming)
    try {
      const made = await coming
      if (Buffer.isBuffer(made)) this.#kept.set(name, made)
      return made
    } finally {
      making.delete(name)
    }
  }
}

function nameOf({ name }: LogRange, coding: Compression): string {
  return `${name}.${coding}`
}
