// Reads a file of rejects as an input: each `text`, once corrected, is a record in its original format.
import { CsvSplitter } from './csv.ts'
import { NdjsonSplitter } from './ndjson.ts'
import type { InputRecord, Splitter } from './record.ts'

/** Matches the beginning of each line of such a file. */
export const rejectStart = /^\{"line":\d+,"reason":"/

type Reject = { header?: string; text: string }

export class MendedSplitter implements Splitter {
  readonly #lines = new NdjsonSplitter()
  #csv: CsvSplitter | undefined
  /** Lines of the rows that are still in the CSV splitter. */
  #places: number[] = []

  async push(chunk: Buffer, found: InputRecord[]): Promise<void> {
    const lines: InputRecord[] = []
    this.#lines.push(chunk, lines)
    await this.#take(lines, found)
  }

  async end(found: InputRecord[]): Promise<void> {
    const lines: InputRecord[] = []
    this.#lines.end(lines)
    await this.#take(lines, found)
    const rows: InputRecord[] = []
    await this.#csv?.end(rows)
    this.#give(rows, found)
  }

  async #take(lines: InputRecord[], found: InputRecord[]): Promise<void> {
    for (const record of lines) {
      const { header, text } = readReject(record)
      if (header === undefined) found.push({ ...record, source: text })
      else await this.#takeRow(record.line, { header, text }, found)
    }
  }

  /** Gives a row to the CSV splitter; before the first one, the header row. */
  async #takeRow(line: number, { header, text }: Required<Reject>, found: InputRecord[]): Promise<void> {
    this.#places.push(...(this.#csv ? [line] : [line, line]))
    const rows: InputRecord[] = []
    const before = this.#csv ? '' : `${header}\n`
    this.#csv ??= new CsvSplitter()
    await this.#csv.push(Buffer.from(`${before}${text}\n`), rows)
    this.#give(rows, found)
  }

  #give(rows: InputRecord[], found: InputRecord[]): void {
    for (const row of rows) found.push({ ...row, line: this.#places.shift() as number })
  }
}

/** Reads a reject. Any other line is taken as a record itself, and the check reports its fault. */
function readReject({ source }: InputRecord): Reject {
  try {
    const { header, text } = JSON.parse(source as string)
    if (typeof text === 'string') return { ...(typeof header === 'string' && { header }), text }
  } catch {}
  return { text: source as string }
}
