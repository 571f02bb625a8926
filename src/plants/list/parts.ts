// A list is read in parts, each bounded by its count of plants and by its bytes.

import { pageBytes, pagePlants, segmentPlants, streamReads } from '../../limits.ts'
import { FairPool } from '../../runtime/fair-pool.ts'
import { collect } from '../../runtime/garbage.ts'
import type { Epochs } from '../../store/epochs.ts'
import type { PlantLog } from '../../store/store.ts'

/** The plants after `after` up to `last`, in the log whose epochs these are. */
export type Range = { after: number; last: number; epochs: Epochs }

/** The JSON array of some plants, up to position `reached`. `meanBytes`: of one item with its comma. */
export type Part = { array: Buffer; reached: number; meanBytes: number }

/** Two names of 255 characters, each of them four bytes or escaped in two, and what stands around them. */
const maxItemBytes = 2060
/** So many plants are never too large for a part. */
const safePartPlants = Math.floor(pageBytes / (maxItemBytes + 1))
/** Plants differ in size: aimed lower, a part is rarely too large. */
const aimedBytes = pageBytes * 0.9
/**
 * After so many bytes what was read before is collected: memory that is still in the processor's caches is used again.
 * V8 counts buffers late, and lets them take 64 MiB first; a whole list then takes twice the time (decision 19).
 */
const collectedBytes = 4 * 2 ** 20
/** Items that were smaller than those before let the next part hold more plants, at most by this factor. */
const maxGrowth = 4

export class PartReader {
  readonly #log: PlantLog
  /** True once the store has answered a read later. One that answers at once needs no turns. */
  takesTime = false
  #latelyBytes = maxItemBytes
  #uncollectedBytes = 0
  readonly #longReads = new FairPool({ slots: streamReads })

  constructor(log: PlantLog) {
    this.#log = log
  }

  /**
   * Reads as many plants after `after` as fit, one at least, as far as can be told from the size of those before
   * (`meanBytes`; otherwise of those that were read lately). What turns out to be too large is read again, shorter.
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
      // One of its brackets stands for the comma that the last item lacks.
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
   * Does the next read of a long list once few enough others are at theirs: pages must not wait behind them. Each has a
   * turn of the event loop for itself, so that many that are done at once do not hold it up.
   */
  readInTurn<T>(read: () => Promise<T> | undefined): Promise<T | undefined> {
    return this.#longReads.run('', async () => {
      await new Promise(setImmediate)
      return await read()
    })
  }
}

function fitting(meanBytes: number): number {
  return Math.max(safePartPlants, Math.min(Math.floor(aimedBytes / meanBytes), pagePlants))
}

/** So many plants, or fewer: up to where a segment ends, if they reach that far, so that segments come next. */
function toSegment(after: number, count: number): number {
  return count < segmentPlants ? count : count - ((after + count) % segmentPlants)
}
