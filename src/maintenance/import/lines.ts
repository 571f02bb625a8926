// Splits a text into lines.
import { maxRecordLength } from './record.ts'

export class LineSplitter {
  #line = 0
  #rest = ''

  /** Number of the last line, counted from 1. */
  get line(): number {
    return this.#line
  }

  /** Yields the lines that end in a piece of the text, without their line feeds. */
  *split(text: string, isLast: boolean): Generator<string> {
    const all = this.#rest + text
    let start = 0
    for (let end = all.indexOf('\n'); end !== -1; end = all.indexOf('\n', start)) {
      this.#line++
      yield all.slice(start, end)
      start = end + 1
    }
    // Of an endless line only so much is kept that it is too long, whatever its end.
    this.#rest = all.slice(start, start + maxRecordLength + 2)
    if (!isLast || this.#rest === '') return
    this.#line++
    yield this.#rest
  }
}

/** Removes the carriage return before a line feed. */
export function trimReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line
}
