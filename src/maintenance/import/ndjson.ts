// NDJSON: one JSON text per line. Empty lines are skipped (ndjson.org).
import type { Fault } from '../../../schemas/problem.ts'
import { InputError } from './input-error.ts'
import { type InputRecord, maxRecordLength, type Splitter } from './record.ts'

const lineFeed = 0x0a
const carriageReturn = 0x0d
/** A line of this length means that the input has no lines, such as a device that never ends. */
const endlessBytes = 2 ** 31

const tooLong: Fault = { code: 'length', detail: `is longer than ${maxRecordLength / 1024} KiB`, pointer: '' }

export class NdjsonSplitter implements Splitter {
  #line = 1
  #rest: Buffer = Buffer.alloc(0)
  /** Number of dropped bytes of the current line when it is too long, otherwise 0. */
  #dropped = 0

  push(chunk: Buffer, found: InputRecord[]): void {
    const lines = this.#dropped > 0 ? this.#drop(chunk) : chunk
    const end = lines.lastIndexOf(lineFeed) + 1
    if (end > 0) this.#split(Buffer.concat([this.#rest, lines.subarray(0, end)]), found)
    const rest = lines.subarray(end)
    this.#rest = end > 0 ? rest : Buffer.concat([this.#rest, rest])
    if (this.#rest.length <= maxRecordLength) return
    const text = this.#rest.toString()
    if (text.length <= maxRecordLength) return
    this.#add(text, found)
    this.#dropped = this.#rest.length
    this.#rest = Buffer.alloc(0)
  }

  end(found: InputRecord[]): void {
    this.#split(this.#rest, found)
  }

  /** Drops the rest of a line that is too long; returns what follows it. */
  #drop(chunk: Buffer): Buffer {
    const end = chunk.indexOf(lineFeed) + 1
    this.#dropped = end > 0 ? 0 : this.#dropped + chunk.length
    if (this.#dropped > endlessBytes)
      throw new InputError(`is longer than ${endlessBytes / 2 ** 30} GiB: this is not NDJSON`, this.#line)
    if (end > 0) this.#line++
    return chunk.subarray(end > 0 ? end : chunk.length)
  }

  #split(bytes: Buffer, found: InputRecord[]): void {
    const text = bytes.toString()
    for (let start = 0; start < text.length; this.#line++) {
      const feed = text.indexOf('\n', start)
      const next = feed === -1 ? text.length + 1 : feed + 1
      const end = text.charCodeAt(next - 2) === carriageReturn ? next - 2 : next - 1
      if (end > start) this.#add(text.slice(start, end), found)
      start = next
    }
  }

  /** Adds a record; one that is too long is cut, and has a fault. */
  #add(source: string, found: InputRecord[]): void {
    const line = this.#line
    if (source.length <= maxRecordLength) found.push({ line, source })
    else found.push({ line, source: source.slice(0, maxRecordLength), fault: tooLong })
  }
}
