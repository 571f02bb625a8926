// A list that is too long for one page, part by part, in constant memory.
import { Readable } from 'node:stream'
import type { Part, PartReader, Range } from './parts.ts'

type Chunk = { text: string; ends: boolean }

/**
 * Holds one part that its reader has not asked for yet, beside the one that was handed out last: the next is read when
 * the reader has taken the one before, in another turn of the event loop. A read that fails is the stream's error.
 */
export class ListStream extends Readable {
  readonly #parts: PartReader
  readonly #range: Range
  #before: Part
  #ahead: Promise<Chunk>

  /** `first`: the beginning of the list, which has been read. */
  constructor(parts: PartReader, range: Range, first: Part) {
    // Texts are handed on as they are; nothing is kept here.
    super({ objectMode: true, highWaterMark: 0 })
    this.#parts = parts
    this.#range = range
    this.#before = { ...first, items: '' }
    this.#ahead = Promise.resolve(this.#toChunk('[', first))
  }

  override _read(): void {
    const chunk = this.#ahead
    this.#ahead = chunk.then(({ ends }) => (ends ? chunk : this.#readAhead()))
    // It shows when the reader asks for it.
    this.#ahead.catch(() => {})
    chunk.then(
      ({ text, ends }) => {
        this.push(text)
        if (ends) this.push(null)
      },
      (error) => this.destroy(error),
    )
  }

  async #readAhead(): Promise<Chunk> {
    await new Promise(setImmediate)
    const part = await this.#parts.readInTurn(() => (this.destroyed ? undefined : this.#readNext()))
    return part ? this.#toChunk(',', part) : { text: '', ends: true }
  }

  async #readNext(): Promise<Part> {
    const { reached, meanBytes } = this.#before
    const part = await this.#parts.read(this.#range, reached, meanBytes)
    this.#before = { ...part, items: '' }
    return part
  }

  #toChunk(mark: string, { items, reached }: Part): Chunk {
    const ends = reached === this.#range.last
    return { text: `${mark}${items}${ends ? ']' : ''}`, ends }
  }
}
