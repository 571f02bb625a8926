// Reads lists in parts, each bounded in plants and in bytes.

import { pageBytes, pagePlants, segmentPlants, streamReads } from '../../limits.ts'
import { FairPool } from '../../runtime/fair-pool.ts'
import { collect } from '../../runtime/garbage.ts'
import type { Epochs } from '../../store/epochs.ts'
import type { PlantLog } from '../../store/store.ts'

/** The plants after `after` up to `last`, in the log with these epochs. */
export type Range = { after: number; last: number; epochs: Epochs }

/** The JSON array of plants up to position `reached`. `meanBytes`: of an item with its comma. */
export type Part = { array: Buffer; reached: number; meanBytes: number }

/** The longest item: two texts of 255 characters of four bytes each, and the punctuation. */
const maxItemBytes = 2060
/** The number of plants that always fits into a part. */
const safePartPlants = Math.floor(pageBytes / (maxItemBytes + 1))
/** Target size of a part, below the limit as plants differ in size. */
const aimedBytes = pageBytes * 0.9
/**
 * Bytes read between two collections, which let memory be used again while it is in the processor's caches. V8 itself
 * collects after 64 MiB of buffers, with which a whole list takes twice the time (decision 19).
 */
const collectedBytes = 4 * 2 ** 20
/** The most that the number of plants grows from one part to the next. */
const maxGrowth = 4

export class PartReader {
  readonly #log: PlantLog
  /** True once the store has read asynchronously; a synchronous store needs no queue. */
  takesTime = false
  #latelyBytes = maxItemBytes
  #uncollectedBytes = 0
  readonly #longReads = new FairPool({ slots: streamReads })

  constructor(log: PlantLog) {
    this.#log = log
  }

  /**
   * Reads the plants after `after` that fit into a part, at least one, as estimated from the mean size of the part
   * before (`meanBytes`) or of recent reads. A part that is too large is read again with fewer plants.
   */
  async read({ last, epochs }: Range, after: number, meanBytes = this.#latelyBytes): Promise<Part> {
    let count = last - after
    if (count > fitting(meanBytes)) count = toSegment(after, fitting(meanBytes))
    for (;;) {
      const reached = after + count
      const read = this.#log.read(after, reached, epochs.owner(reached))
      this.takesTime ||= read instanceof Promise
      const array = await read
      this.#collectAfter(array.length)
      // One of the brackets counts as the comma of the last item.
      const measured = Math.max((array.length - 1) / count, meanBytes / maxGrowth)
      if (count >= safePartPlants) this.#latelyBytes = measured
      if (array.length <= pageBytes || count <= safePartPlants) return { array, reached, meanBytes: measured }
      count = Math.min(fitting(measured), count - 1)
    }
  }

  #collectAfter(bytes: number): void {
    this.#uncollectedBytes += bytes
    if (this.#uncollectedBytes < collectedBytes) return
    this.#uncollectedBytes = 0
    collect('minor')
  }

  /**
   * Reads the next part of a long list when few enough others are being read, so that pages do not wait behind them.
   * Each has its own turn of the event loop, so that many synchronous reads do not block it. Resolves to undefined when
   * the list `isGone` by then.
   */
  readInTurn(range: Range, { reached, meanBytes }: Part, isGone: () => boolean): Promise<Part | undefined> {
    return this.#longReads.run('', async () => {
      if (isGone()) return undefined
      await new Promise(setImmediate)
      return await this.read(range, reached, meanBytes)
    })
  }
}

function fitting(meanBytes: number): number {
  return Math.max(safePartPlants, Math.min(Math.floor(aimedBytes / meanBytes), pagePlants))
}

/** Reduces a number of plants so that the range ends with a segment, if it reaches the end of one. */
function toSegment(after: number, count: number): number {
  return count < segmentPlants ? count : count - ((after + count) % segmentPlants)
}
