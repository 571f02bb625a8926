// NDJSON: one JSON text per line. Empty lines are skipped (ndjson.org).
import { InputError } from './input-error.ts'
import { type InputRecord, maxRecordBytes, type Splitter } from './record.ts'

const lineFeed = 0x0a
const carriageReturn = 0x0d

export class NdjsonSplitter implements Splitter {
  #line = 1
  #rest: Buffer = Buffer.alloc(0)

  push(chunk: Buffer, found: InputRecord[]): void {
    const end = chunk.lastIndexOf(lineFeed) + 1
    if (end > 0) this.#split(Buffer.concat([this.#rest, chunk.subarray(0, end)]), found)
    const rest = chunk.subarray(end)
    this.#rest = end > 0 ? rest : Buffer.concat([this.#rest, rest])
    this.#checkLength(this.#rest.length)
  }

  end(found: InputRecord[]): void {
    this.#split(this.#rest, found)
  }

  #split(bytes: Buffer, found: InputRecord[]): void {
    const text = bytes.toString()
    for (let start = 0; start < text.length; this.#line++) {
      const feed = text.indexOf('\n', start)
      const next = feed === -1 ? text.length + 1 : feed + 1
      const end = text.charCodeAt(next - 2) === carriageReturn ? next - 2 : next - 1
      this.#checkLength(end - start)
      if (end > start) found.push({ line: this.#line, source: text.slice(start, end) })
      start = next
    }
  }

  #checkLength(length: number): void {
    if (length > maxRecordBytes)
      throw new InputError(`is longer than ${maxRecordBytes / 1024} KiB`, this.#line)
  }
}
