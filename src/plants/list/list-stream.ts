// A list that is too long for one page, part by part, in constant memory.
import { Readable } from 'node:stream'
import type { Part, PartReader, Range } from './parts.ts'

const nothing = Buffer.alloc(0)
const comma = 0x2c

type Chunk = { bytes: Buffer; ends: boolean }

/**
 * Holds one part that its reader has not asked for yet, beside the one that was handed out last: the next is read when
 * the reader has taken the one before, in another turn of the event loop. A read that fails is the stream's error.
 */
export class ListStream extends Readable {
  readonly #parts: PartReader
  readonly #range: Range
  #before: Part
  #ahead: Promise<Chunk>
  #sentBytes = 0

  /** `first`: the beginning of the list, which has been read. */
  constructor(parts: PartReader, range: Range, first: Part) {
    // Nothing is kept here: a part goes to the reader, or waits ahead.
    super({ highWaterMark: 0 })
    this.#parts = parts
    this.#range = range
    this.#before = first
    this.#ahead = Promise.resolve(this.#toChunk(first, true))
  }

  /** How much of the list its reader has taken. */
  get sentBytes(): number {
    return this.#sentBytes
  }

  override _read(): void {
    const chunk = this.#ahead
    this.#ahead = chunk.then(({ ends }) => (ends ? chunk : this.#readAhead()))
    // It shows when the reader asks for it.
    this.#ahead.catch(() => {})
    chunk.then(
      ({ bytes, ends }) => {
        this.#sentBytes += bytes.length
        this.push(bytes)
        if (ends) this.push(null)
      },
      (error) => this.destroy(error),
    )
  }

  async #readAhead(): Promise<Chunk> {
    const part = await this.#parts.readInTurn(() => (this.destroyed ? undefined : this.#readNext()))
    return part ? this.#toChunk(part, false) : { bytes: nothing, ends: true }
  }

  async #readNext(): Promise<Part> {
    const { reached, meanBytes } = this.#before
    const part = await this.#parts.read(this.#range, reached, meanBytes)
    this.#before = part
    return part
  }

  /** The brackets of the parts become those of the list, and the commas between them. */
  #toChunk({ array, reached }: Part, isFirst: boolean): Chunk {
    const ends = reached === this.#range.last
    // The first part may be that of several streams.
    if (!isFirst) array[0] = comma
    return { bytes: ends ? array : array.subarray(0, -1), ends }
  }
}
