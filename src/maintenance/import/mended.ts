// Reads a file of rejects as an input: each `text`, once corrected, is a record in its original format.
import { CsvSplitter } from './csv.ts'
import { InputError } from './input-error.ts'
import { NdjsonSplitter } from './ndjson.ts'
import type { InputRecord, Splitter } from './record.ts'

/** Matches the beginning of each line of such a file. */
export const rejectStart = /^\{"line":\d+,"reason":"/

type Reject = { header?: string; text: string }

export class MendedSplitter implements Splitter {
  readonly #lines = new NdjsonSplitter()
  #header: string | undefined;

  *split(piece: string, isLast: boolean): Generator<InputRecord> {
    for (const record of this.#lines.split(piece, isLast)) {
      const { header, text } = readReject(record.text)
      if (header === undefined) yield { ...record, text }
      else yield* this.#splitRow(record.line, header, text)
    }
  }

  /** Yields the row of a reject, and before the first one its header row. All have the line of their reject. */
  *#splitRow(line: number, header: string, text: string): Generator<InputRecord> {
    const before = this.#header === undefined ? `${header}\n` : ''
    this.#header ??= header
    if (header !== this.#header) throw new InputError('has other columns than the rejects before it', line)
    try {
      for (const row of new CsvSplitter().split(before + text, true)) yield { ...row, line }
    } catch (error) {
      throw new InputError((error as InputError).reason, line)
    }
  }
}

/** Reads a reject. Any other line is taken as a record itself, and the check reports its fault. */
function readReject(line: string): Reject {
  try {
    const { header, text } = JSON.parse(line)
    if (typeof text === 'string') return { ...(typeof header === 'string' && { header }), text }
  } catch {}
  return { text: line }
}
