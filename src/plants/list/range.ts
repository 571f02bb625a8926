// The bytes of a range of the log: a page in one piece, a longer list part by part. Each part is bounded in plants and
// in bytes, so memory is constant.
import { Readable } from 'node:stream'
import {
  maxWaitingReads,
  pageBytes,
  pagePlants,
  readConnections,
  segmentPlants,
  streamReads,
} from '../../limits.ts'
import { FairPool } from '../../runtime/fair-pool.ts'
import { makeCollector } from '../../runtime/garbage.ts'
import type { PlantLog } from '../../store/engine.ts'
import type { Epochs } from '../../store/epochs.ts'
import { StoreUnavailable } from '../../store/errors.ts'
import { itemFormat } from '../item.ts'

/**
 * The plants after `after` up to `last`, as the epoch that owns `last` has them. They never change, and neither does
 * their JSON, so `name` stands for these bytes for ever and on every replica.
 */
export type LogRange = { name: string; after: number; last: number; epochs: Epochs }

export function rangeOf(after: number, last: number, epochs: Epochs): LogRange {
  return { name: `${epochs.owner(last)}.${itemFormat}.${after}-${last}`, after, last, epochs }
}

/** The JSON array of plants up to position `reached`. `meanBytes`: of an item with its comma. */
export type Part = { array: Buffer; reached: number; meanBytes: number }

/** The longest item: two texts of 255 characters of four bytes each, and the punctuation. */
const maxItemBytes = 2060
/** The number of plants that always fits into a part. */
const safePartPlants = Math.floor(pageBytes / (maxItemBytes + 1))
/** Target size of a part, below the limit as plants differ in size. */
const aimedBytes = pageBytes * 0.9
/** The most that the number of plants grows from one part to the next. */
const maxGrowth = 4
const comma = Buffer.from(',')

/** Pools for the beginnings of lists, and for the rest of long ones, which leaves connections for pages. */
export function makeReadPools() {
  const refuse = () => new StoreUnavailable('overloaded', 'too much waits to be read already')
  return {
    beginnings: new FairPool({ slots: readConnections, line: { most: maxWaitingReads, refuse } }),
    rests: new FairPool({ slots: streamReads }),
  }
}

export class RangeReader {
  readonly #log: PlantLog
  readonly #pools: ReturnType<typeof makeReadPools>
  /** True once the store has read asynchronously; a synchronous store needs no queue. */
  #takesTime = false
  #latelyBytes = maxItemBytes
  readonly #collectAfter = makeCollector()

  constructor(log: PlantLog, pools: ReturnType<typeof makeReadPools>) {
    this.#log = log
    this.#pools = pools
  }

  /** Reads the whole range when it is small, otherwise its first part, in the turn of `owner`. */
  begin(range: LogRange, owner: string): Promise<Buffer | Part> {
    const read = () => this.#readBeginning(range)
    return this.#takesTime ? this.#pools.beginnings.run(owner, read) : read()
  }

  /** Streams a range from its first part, which several streams may share. One part is made ahead of the reader. */
  stream(range: LogRange, first: Part): Readable {
    const isGone = () => stream.destroyed
    const parts = this.#readAll(range, first, isGone)
    const stream = Readable.from(parts, { objectMode: false, highWaterMark: 1 })
    return stream
  }

  async #readBeginning(range: LogRange): Promise<Buffer | Part> {
    let part = await this.#read(range, range.after)
    while (part.reached < range.last && seemsSmall(part, range)) {
      const more = await this.#read(range, part.reached, part.meanBytes)
      part = { ...more, array: joinArrays(part.array, more.array) }
    }
    return part.reached < range.last || part.array.length > pageBytes ? part : part.array
  }

  async *#readAll(range: LogRange, first: Part, isGone: () => boolean): AsyncGenerator<Buffer, void> {
    for (let part: Part | undefined = first; part; part = await this.#readNext(range, part, isGone)) {
      const { array, reached }: Part = part
      const isLast = reached === range.last
      // Turn the brackets of the parts into those of the list, and into commas.
      if (part !== first) comma.copy(array)
      yield isLast ? array : array.subarray(0, -1)
      if (isLast) return
    }
  }

  /**
   * Reads the next part of a long list when few enough others are being read, so that pages do not wait behind them.
   * Each has its own turn of the event loop, so that many synchronous reads do not block it. Resolves to undefined when
   * the list `isGone` by then.
   */
  #readNext(range: LogRange, part: Part, isGone: () => boolean): Promise<Part | undefined> {
    return this.#pools.rests.run('', async () => {
      if (isGone()) return undefined
      await new Promise(setImmediate)
      return await this.#read(range, part.reached, part.meanBytes)
    })
  }

  /**
   * Reads the plants after `after` that fit into a part, at least one, as estimated from the mean size of the part
   * before (`meanBytes`) or of recent reads. A part that is too large is read again with fewer plants.
   */
  async #read({ last, epochs }: LogRange, after: number, meanBytes = this.#latelyBytes): Promise<Part> {
    let count = last - after
    if (count > fitting(meanBytes)) count = toSegment(after, fitting(meanBytes))
    for (;;) {
      const reached = after + count
      const read = this.#log.read(after, reached, epochs.owner(reached))
      this.#takesTime ||= read instanceof Promise
      const array = await read
      this.#collectAfter(array.length)
      // One of the brackets counts as the comma of the last item.
      const measured = Math.max((array.length - 1) / count, meanBytes / maxGrowth)
      if (count >= safePartPlants) this.#latelyBytes = measured
      if (array.length <= pageBytes || count <= safePartPlants) return { array, reached, meanBytes: measured }
      count = Math.min(fitting(measured), count - 1)
    }
  }
}

/** True when a range is no larger than a part, if its rest is like its beginning. */
function seemsSmall({ array, reached }: Part, { after, last }: LogRange): boolean {
  const count = last - after
  return count <= pagePlants && (array.length / (reached - after)) * count <= pageBytes
}

/** Joins two JSON arrays that are not empty. */
function joinArrays(one: Buffer, other: Buffer): Buffer {
  return Buffer.concat([one.subarray(0, -1), comma, other.subarray(1)])
}

function fitting(meanBytes: number): number {
  return Math.max(safePartPlants, Math.min(Math.floor(aimedBytes / meanBytes), pagePlants))
}

/** Reduces a number of plants so that the range ends with a segment, if it reaches the end of one. */
function toSegment(after: number, count: number): number {
  return count < segmentPlants ? count : count - ((after + count) % segmentPlants)
}
