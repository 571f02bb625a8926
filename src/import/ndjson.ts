// NDJSON: one JSON text per line. Empty lines are skipped (ndjson.org).
import { InputError } from './input-error.ts'
import { type InputRecord, maxRecordBytes, type Splitter } from './record.ts'

const lineFeed = 0x0a
const carriageReturn = 0x0d

export class NdjsonSplitter implements Splitter {
  #line = 1
  #rest: Buffer = Buffer.alloc(0)

  push(chunk: Buffer): InputRecord[] {
    const end = chunk.lastIndexOf(lineFeed) + 1
    const records = end > 0 ? this.#split(Buffer.concat([this.#rest, chunk.subarray(0, end)])) : []
    const rest = chunk.subarray(end)
    this.#rest = end > 0 ? rest : Buffer.concat([this.#rest, rest])
    this.#checkLength(this.#rest.length)
    return records
  }

  end(): InputRecord[] {
    const last = this.#rest
    this.#rest = Buffer.alloc(0)
    return last.length > 0 ? this.#split(last) : []
  }

  #split(bytes: Buffer): InputRecord[] {
    const text = bytes.toString()
    const records: InputRecord[] = []
    for (let start = 0; start < text.length; this.#line++) {
      const feed = text.indexOf('\n', start)
      const next = feed === -1 ? text.length + 1 : feed + 1
      const end = text.charCodeAt(next - 2) === carriageReturn ? next - 2 : next - 1
      this.#checkLength(end - start)
      if (end > start) records.push({ line: this.#line, source: text.slice(start, end) })
      start = next
    }
    return records
  }

  #checkLength(length: number): void {
    if (length > maxRecordBytes)
      throw new InputError(`is longer than ${maxRecordBytes / 1024} KiB`, this.#line)
  }
}
